package page

import (
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/inspect"
)

// A finding is a deadlock, or what may be one.
type finding struct {
	Severity string   `json:"severity"`
	Kind     string   `json:"kind"`
	Advice   string   `json:"advice"`
	Parties  []string `json:"parties"`
	Locks    []string `json:"locks"`
	Since    int64    `json:"since"` // ms; when the last of its waits began
}

// verdict adds the findings of a complete view, and returns them. A view that has not changed since the
// one before is a second look at the same locks: an edge in both existed all the time between them.
// Locks without waiters have no edge, so contended has all that can be part of a deadlock.
func (c *collector) verdict(b *board, contended inspect.Snapshot) []inspect.Finding {
	b.findings = []finding{}
	if !contended.Complete || !c.contended.Complete {
		return nil
	}
	dead := map[string]bool{}
	found := inspect.Deadlocks(c.contended, contended)
	for _, f := range found {
		b.findings = append(b.findings, findingOf(f))
		if f.Severity == inspect.Error {
			b.dead++
		}
		for _, e := range f.Edges {
			dead[e.Lock] = true
		}
	}
	for i := range b.entries {
		b.entries[i].dead = dead[b.entries[i].lock.Path]
	}
	return found
}

func findingOf(f inspect.Finding) finding {
	d := finding{
		Severity: string(f.Severity), Kind: string(f.Problem), Advice: f.Advice,
		Parties: []string{}, Locks: []string{},
	}
	if f.Severity != inspect.Error {
		d.Kind = "possible " + d.Kind
	}
	for _, p := range f.Parties {
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

// errorText names the kind of an error and nothing of its text, which may hold a path.
func errorText(err error) string {
	if kind := framework.ErrorType(err); kind != "" {
		return kind
	}
	return "error"
}
