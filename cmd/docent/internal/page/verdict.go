package page

import (
	"slices"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/cmd/docent/internal/waits"
)

// A finding is a deadlock, or what may be one.
type finding struct {
	Severity string   `json:"severity"`
	Kind     string   `json:"kind"`
	Advice   string   `json:"advice"`
	Parties  []string `json:"parties"`
	More     int      `json:"more,omitempty"` // parties that are left out
	Locks    []string `json:"locks"`
	Since    int64    `json:"since"` // ms; when the last of its waits began
}

// A standing edge joins two znodes, which never come again under their names and transactions.
type standing struct{ waiter, blocker holder }

// A holder is a znode that never comes again: its path and its czxid.
type holder struct {
	znode string
	czxid int64
}

func holderOf(c *inspect.Contender) holder { return holder{znode: c.Znode, czxid: c.Czxid} }

// A judge finds deadlocks in the views. One goroutine uses it.
type judge struct {
	last  inspect.Snapshot       // the locks of the view before that have waiters; zero if that was not current
	since map[standing]time.Time // since when the edges of findings are known to exist
	found []inspect.Finding      // of the last current view
	due   time.Time              // when the next finding is to be shown if nothing changes; zero for none
}

// Since when all waits of a finding exist before the page shows it.
const (
	settled        = 2 * time.Second
	threadsSettled = time.Minute // if nothing shows which threads hold and wait
)

// see returns what the page shows of the findings. Only a current view is judged: another one may mix
// old with new. An edge that is in two views one after the other existed all the time between them. Locks
// without waiters have no edge, so contended has all that can be part of a deadlock.
func (j *judge) see(view inspect.View, contended inspect.Snapshot) []inspect.Finding {
	if view.State != inspect.Current {
		j.last, j.since, j.due = inspect.Snapshot{}, nil, time.Time{}
		return j.found
	}
	first := j.last
	j.due = time.Time{}
	if j.last = contended; first.At.IsZero() {
		j.found = nil
		return nil
	}
	since, shown := make(map[standing]time.Time), []inspect.Finding(nil)
	for _, f := range inspect.Deadlocks(first, contended) {
		begun := time.Time{}
		for _, e := range f.Edges {
			id := standing{holderOf(&e.Waiter), holderOf(&e.Blocker)}
			if since[id] = j.since[id]; since[id].IsZero() {
				since[id] = first.At
			}
			if since[id].After(begun) {
				begun = since[id]
			}
		}
		wait := settled
		if f.Severity == inspect.Info {
			wait = threadsSettled
		}
		due := begun.Add(wait)
		switch {
		case f.Severity == inspect.Info && f.Problem == inspect.SelfWait: // two threads in one queue
		case view.At.Before(due):
			j.due = show.Earlier(j.due, due)
		default:
			shown = append(shown, f)
		}
	}
	inspect.Sort(shown)
	j.since, j.found = since, shown
	return shown
}

// judge adds the findings, and marks their locks.
func (b *board) judge(found []inspect.Finding) {
	b.findings = []finding{}
	marks := make(map[string]waits.Mark)
	for _, f := range found {
		b.findings = append(b.findings, findingOf(f))
		mark := waits.MarkOf(f)
		if mark == waits.Dead {
			b.dead++
		}
		for _, e := range f.Edges {
			marks[e.Lock] = max(marks[e.Lock], mark)
		}
	}
	for _, e := range b.entries {
		e.mark = marks[e.lock.Path]
	}
}

// maxParties is how many parties of a finding are named.
const maxParties = 8

func findingOf(f inspect.Finding) finding {
	d := finding{
		Severity: string(f.Severity), Kind: string(f.Problem), Advice: f.Advice,
		Parties: []string{}, Locks: []string{}, More: max(0, len(f.Parties)-maxParties),
	}
	if f.Severity != inspect.Error {
		d.Severity, d.Kind = string(inspect.Warning), "possible "+d.Kind
	}
	for _, p := range f.Parties[:len(f.Parties)-d.More] {
		d.Parties = append(d.Parties, cut(p.String()))
	}
	for _, e := range f.Edges {
		if !slices.Contains(d.Locks, e.Lock) {
			d.Locks = append(d.Locks, e.Lock)
		}
		d.Since = max(d.Since, millis(e.Waiter.Created))
	}
	return d
}
