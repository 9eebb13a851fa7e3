package page

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/cmd/docent/internal/waits"
	"github.com/docent-go/docent/framework/zktel"
)

// A frame is all that a tab shows of a board.
type frame struct {
	Summary  summary
	Findings []finding
	Rows     []row
	Queue    *queue
	Graph    *graph
	Holds    []lane
}

// A summary is the first line of the page.
type summary struct {
	State     string        `json:"state"` // connecting, scanning, live, stale
	Since     int64         `json:"since"` // ms; of the state
	Cause     string        `json:"cause,omitempty"`
	Fault     string        `json:"fault,omitempty"` // the kind of error for which the root can't be read
	Servers   string        `json:"servers"`
	Root      string        `json:"root"`
	Locks     int           `json:"locks"`
	Held      int           `json:"held"`
	Waiting   int           `json:"waiting"`
	Deadlocks int           `json:"deadlocks"`
	Matching  int           `json:"matching"`         // rows that the tab asks for; it gets 200 at most
	Unread    []form.Unread `json:"unread,omitempty"` // with the kinds of errors, and nothing of their texts, which may hold a path
	MoreBad   int           `json:"more_unread,omitempty"`
	LeftOut   int           `json:"left_out,omitempty"` // znodes that --max leaves out
	Revoke    bool          `json:"revoke,omitempty"`   // the page may ask holders to release
	Beat      int64         `json:"beat"`               // ms; between two messages, at most
}

// A row is a lock in the table.
type row struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`
	Permits int    `json:"permits,omitempty"`
	Holders []who  `json:"holders"` // the first of them
	Held    int    `json:"held"`    // how many there are
	Since   int64  `json:"since"`   // ms; of the oldest holder
	Waiting int    `json:"waiting"`
	Longest int64  `json:"longest"` // ms; of the oldest waiter

	Mark    waits.Mark `json:"mark,omitempty"`
	Runs    []run      `json:"runs,omitempty"`    // the last run of a schedule
	Unknown bool       `json:"unknown,omitempty"` // the data are not a schedule's
}

// A run is one of a schedule, as its host recorded it.
type run struct {
	Slot  int64  `json:"slot"` // ms, as From and To
	State string `json:"state"`
	Name  string `json:"name"`
	From  int64  `json:"from"`
	To    int64  `json:"to,omitempty"`
}

// A queue has the contenders of one lock: all of them, or its head and its tail.
type queue struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"`
	Total      int    `json:"total"`
	Contenders []who  `json:"contenders"`
	More       int    `json:"more,omitempty"` // left out between the head and the tail
	Tail       []who  `json:"tail,omitempty"`
	Runs       []run  `json:"runs,omitempty"` // the last ones of a schedule, the newest first
}

const (
	rowHolders  = 3
	maxUnread   = 50
	maxQueue    = 1_000 // contenders of a queue that is not folded
	foldedQueue = 12    // longer ones are folded
	headHolders = 6     // of a folded queue
	headWaiters = 3
	tailWaiters = 3
	queueRuns   = 20
)

// frame returns what the tab shows.
func (b *board) frame(cfg Config, q query) frame {
	entries := b.find(q)
	f := frame{Summary: b.summary(cfg), Findings: b.findings, Graph: &b.graph, Queue: b.queue(q.open, q.whole)}
	f.Summary.Matching = len(entries)
	for _, e := range entries[:min(len(entries), maxRows)] {
		f.Rows = append(f.Rows, e.row())
	}
	f.Holds = b.lanes(q.pick, f.Rows)
	return f
}

func (b *board) summary(cfg Config) summary {
	s := summary{
		State: string(b.view.State), Since: millis(b.view.Since),
		Fault: rootFault(b.view), LeftOut: b.view.LeftOut,
		Servers: cfg.Servers, Root: cfg.Root, Revoke: cfg.Revoke != nil, Beat: cfg.Beat.Milliseconds(),
		Locks: len(b.entries), Held: b.held, Waiting: b.waiting, Deadlocks: b.dead,
	}
	if b.view.Cause != nil {
		s.Cause = b.view.Cause.Error()
	}
	for _, u := range b.view.Unread[:min(len(b.view.Unread), maxUnread)] {
		s.Unread = append(s.Unread, form.Unread{Path: u.Path, Error: zktel.ErrorType(u.Err)})
	}
	s.MoreBad = len(b.view.Unread) - len(s.Unread)
	return s
}

// find returns the locks that the tab asks for, in its order.
func (b *board) find(q query) []*entry {
	all := b.entries
	if q.order == byMatterFirst {
		all = b.matters()
	}
	order := orders()[q.order]
	if q.find == "" && !q.waiting && !q.desc && order == nil { // what most tabs ask for costs no copy
		return all
	}
	found := make([]*entry, 0, len(all))
	for _, e := range all {
		if e.matches(q) {
			found = append(found, e)
		}
	}
	if order != nil {
		slices.SortStableFunc(found, order)
	}
	if q.desc {
		slices.Reverse(found)
	}
	return found
}

func (e *entry) row() row {
	r := row{
		Path: e.lock.Path, Kind: string(e.lock.Kind), Permits: e.lock.Permits,
		Since: millis(e.Held), Waiting: e.Waiting, Longest: millis(e.Longest), Mark: e.mark,
		Holders: []who{}, Held: e.Holders, Runs: runsOf(e.lock, 1), Unknown: e.lock.Unknown,
	}
	for i := range e.lock.Contenders {
		if c := &e.lock.Contenders[i]; c.State == inspect.Holds && len(r.Holders) < rowHolders {
			r.Holders = append(r.Holders, whoOf(c))
		}
	}
	return r
}

// queue returns the contenders of the lock at path, nil if there is no such lock.
func (b *board) queue(path string, whole bool) *queue {
	i, found := slices.BinarySearchFunc(b.entries, path, func(e *entry, path string) int { return cmp.Compare(e.lock.Path, path) })
	if !found {
		return nil
	}
	l := b.entries[i].lock
	q := &queue{Path: l.Path, Kind: string(l.Kind), Total: len(l.Contenders), Runs: runsOf(l, queueRuns)}
	head, tail := min(len(l.Contenders), maxQueue), 0
	if !whole && len(l.Contenders) > foldedQueue {
		first := slices.IndexFunc(l.Contenders, func(c inspect.Contender) bool { return c.State == inspect.Waits })
		if first < 0 {
			first = len(l.Contenders)
		}
		head, tail = min(first, headHolders)+headWaiters, tailWaiters
	}
	q.More = len(l.Contenders) - head - tail
	q.Contenders, q.Tail = whosOf(l.Contenders[:head]), whosOf(l.Contenders[head+q.More:])
	return q
}

// runsOf returns the last runs of a schedule, at most so many, the newest first.
func runsOf(l *inspect.Lock, most int) []run {
	var all []run
	for _, r := range slices.Backward(l.Runs[max(0, len(l.Runs)-most):]) {
		all = append(all, run{
			Slot: millis(r.Slot), State: cut(string(r.State)), Name: fmt.Sprintf("%s:%d", cut(r.Host), r.PID),
			From: millis(r.From), To: millis(r.To),
		})
	}
	return all
}

func whosOf(contenders []inspect.Contender) []who {
	var all []who
	for i := range contenders {
		all = append(all, whoOf(&contenders[i]))
	}
	return all
}

// A who is a contender, as rows and queues show it. No data of its znode is shown, and no identity.
type who struct {
	Znode   string `json:"znode"`
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"`
	State   string `json:"state"`
	Side    string `json:"side"`
	By      string `json:"by"`
	Session string `json:"session"`
	Attempt string `json:"attempt,omitempty"` // differs between the threads of a session; "" with an owner
	Fence   string `json:"fence"`
	Since   int64  `json:"since"` // ms; when the znode was created, by the servers' clock
	Revoked bool   `json:"revoked,omitempty"`
}

func whoOf(c *inspect.Contender) who {
	w := who{
		Znode: c.Znode, Name: nameOf(c), State: string(c.State), Side: string(c.Side), By: string(c.By),
		Session: show.Session(c.Session), Fence: fenceText(c.Czxid), Since: millis(c.Created), Revoked: c.Revoked,
	}
	if c.Meta != nil {
		w.Owner = cut(c.Meta.Owner)
	}
	if w.Owner == "" {
		w.Attempt = attemptOf(c)
	}
	return w
}

// attemptOf returns the beginning of the random id and the number in the znode's name. Both are of one
// attempt of one thread, and are all that tells it from others of its session.
func attemptOf(c *inspect.Contender) string {
	name := strings.TrimPrefix(path.Base(c.Znode), "_c_")
	const id = 8
	if len(name) <= id || strings.Trim(name[:id], "0123456789abcdef") != "" {
		return fmt.Sprintf("#%d", c.Sequence)
	}
	return fmt.Sprintf("%s #%d", name[:id], c.Sequence)
}

// nameOf returns host and process id, else what the znode says, else the session.
func nameOf(c *inspect.Contender) string {
	switch {
	case c.Meta != nil && c.Meta.Host != "":
		return fmt.Sprintf("%s:%d", cut(c.Meta.Host), c.Meta.PID)
	case c.Label != "":
		return c.Label
	}
	return show.Session(c.Session)
}

func fenceText(czxid int64) string { return strconv.FormatInt(czxid, 10) }

// millis returns t in milliseconds since 1970, 0 for no time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// maxName is how many bytes of a name are sent. The page shows fewer characters. Any client may write a
// name of a megabyte, and each tab would get it with each row.
const maxName = 2 << 10

// cut returns the beginning of a name that is too long.
func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}
