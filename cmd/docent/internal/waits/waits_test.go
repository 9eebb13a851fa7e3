package waits_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/waits"
	"github.com/docent-go/docent/recipes/lease"
)

// queue returns a mutex with one contender per session. The first holds, and each of the others waits
// for its predecessor, and came a second after it.
func queue(path string, begun time.Time, sessions ...int64) inspect.Lock {
	l := inspect.Lock{Path: path, Kind: inspect.Mutex}
	for i, session := range sessions {
		c := inspect.Contender{
			Znode: fmt.Sprintf("%s/%d", path, i), State: inspect.Holds, Session: session, Czxid: int64(i + 1),
			Created: begun.Add(time.Duration(i) * time.Second), Meta: &lease.Metadata{Party: fmt.Sprint(session)},
		}
		if i > 0 {
			c.State, c.WaitsFor = inspect.Waits, []string{l.Contenders[i-1].Znode}
		}
		l.Contenders = append(l.Contenders, c)
	}
	return l
}

// A picture has the deadlock, then the longest waits, and never more parties than fit.
func TestOf(t *testing.T) {
	t.Parallel()
	old, late := time.Unix(1000, 0), time.Unix(2000, 0)
	locks := []inspect.Lock{queue("/a", late, 1, 2), queue("/b", late, 2, 1)}
	for i := range waits.Most {
		locks = append(locks, queue(fmt.Sprintf("/long-%02d", i), old, int64(100+2*i), int64(101+2*i)))
	}
	s := inspect.Snapshot{Locks: locks}
	g := waits.Of(s, inspect.Deadlocks(s, s))
	if len(g.Parties) != waits.Most || g.Left != waits.Most-(waits.Most-2)/2 {
		t.Errorf("%d parties, %d waiters left out", len(g.Parties), g.Left)
	}
	for i, want := range []waits.Edge{
		{From: 0, To: 1, Lock: "/a", Mark: waits.Dead, Direct: true},
		{From: 1, To: 0, Lock: "/b", Mark: waits.Dead, Direct: true},
		{From: 2, To: 3, Lock: "/long-00", Direct: true},
		{From: 4, To: 5, Lock: "/long-01", Direct: true},
	} {
		if g.Edges[i] != want {
			t.Errorf("edge %d: %+v, want %+v", i, g.Edges[i], want)
		}
	}
	if p := g.Parties[0]; p.Mark != waits.Dead || !p.Since.Equal(late.Add(time.Second)) || p.Session != 2 {
		t.Errorf("the first party: %+v", p)
	}
	if p := g.Parties[3]; p.Mark != 0 || !p.Since.IsZero() {
		t.Errorf("a holder: %+v", p)
	}
}

// Of a long queue, a picture has the head, the tail, and one node for the waiters between them.
func TestOf_a_long_queue(t *testing.T) {
	t.Parallel()
	sessions := make([]int64, 1_001)
	for i := range sessions {
		sessions[i] = int64(i + 1)
	}
	g := waits.Of(inspect.Snapshot{Locks: []inspect.Lock{queue("/long", time.Unix(1000, 0), sessions...)}}, nil)
	if len(g.Parties) != 1+3+1+3 || len(g.Edges) != 7 || g.Left != 0 {
		t.Fatalf("%+v", g)
	}
	i := slices.IndexFunc(g.Parties, func(p waits.Party) bool { return p.Crowd > 0 })
	if i < 0 || g.Parties[i].Crowd != 994 || g.Parties[i].String() != "+994 waiters" {
		t.Errorf("%+v", g.Parties)
	}
	into := slices.ContainsFunc(g.Edges, func(e waits.Edge) bool { return e.To == i && e.From != i })
	out := slices.ContainsFunc(g.Edges, func(e waits.Edge) bool { return e.From == i && e.To != i })
	if !into || !out {
		t.Errorf("%+v", g.Edges)
	}
}

// What may be a deadlock is marked as that, behind the deadlocks.
func TestOf_what_may_be_a_deadlock(t *testing.T) {
	t.Parallel()
	bySession := func(l inspect.Lock) inspect.Lock {
		for i := range l.Contenders {
			l.Contenders[i].Meta = nil
		}
		return l
	}
	begun := time.Unix(1000, 0)
	s := inspect.Snapshot{Locks: []inspect.Lock{
		bySession(queue("/a", begun, 1, 2)), bySession(queue("/b", begun, 2, 1)), queue("/c", begun, 3, 4), queue("/d", begun, 4, 3),
	}}
	g := waits.Of(s, inspect.Deadlocks(s, s))
	if len(g.Parties) != 4 || len(g.Edges) != 4 {
		t.Fatalf("%+v", g)
	}
	for i, want := range []waits.Mark{waits.Dead, waits.Dead, waits.Possible, waits.Possible} {
		if p, e := g.Parties[i], g.Edges[i]; p.Mark != want || e.Mark != want {
			t.Errorf("%d: %+v, %+v, want the mark %d", i, p, e, want)
		}
	}
}

// An owner that waits for itself is one party.
func TestOf_an_owner_that_waits_for_itself(t *testing.T) {
	t.Parallel()
	s := inspect.Snapshot{Locks: []inspect.Lock{queue("/self", time.Unix(1000, 0), 7, 7)}}
	g := waits.Of(s, nil)
	if len(g.Parties) != 1 || len(g.Edges) != 1 || g.Edges[0].From != g.Edges[0].To || g.Left != 0 {
		t.Errorf("%+v", g)
	}
}
