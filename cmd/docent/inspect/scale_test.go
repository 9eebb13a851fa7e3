package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/recipes/lease"
)

// crowds returns directories of n contenders, in the shapes that could cost n².
func crowds(n int) map[string]func() inspect.Znode {
	znodes := func(kind func(i int) string, data func(i int) string) []znode {
		all := make([]znode, n)
		for i := range all {
			all[i] = znode{fmt.Sprintf("%s%s%010d", guid, kind(i), i), int64(i%100 + 1), int64(i + 1), data(i)}
		}
		return all
	}
	always := func(kind string) func(int) string { return func(int) string { return kind } }
	nothing := func(int) string { return "" }
	party := func(i int) string { return metadata(lease.Metadata{Party: fmt.Sprint(i)}) }
	writerFirst := func(i int) string {
		if i == 0 {
			return "__WRIT__"
		}
		return "__READ__"
	}
	holders := func() inspect.Znode {
		leases := below("/l/leases", "", znodes(always("lease-"), party)...)
		turn := below("/l/locks", "", znode{fmt.Sprintf("%slock-%010d", guid, 1), leases.Children[n-1].Stat.EphemeralOwner, 1, ""})
		return inspect.Znode{Path: "/l", Children: []inspect.Znode{leases, turn}}
	}
	queue := func() inspect.Znode {
		leases := below("/l/leases", "", znode{fmt.Sprintf("%slease-%010d", guid, 1), 1, 1, ""}, znode{fmt.Sprintf("%slease-%010d", guid, 2), 1, 3, ""})
		turns := below("/l/locks", "", znodes(always("lock-"), party)...)
		return inspect.Znode{Path: "/l", Children: []inspect.Znode{leases, turns}}
	}
	return map[string]func() inspect.Znode{
		"a mutex":                  func() inspect.Znode { return below("/l", "", znodes(always("lock-"), party)...) },
		"a mutex of Curator":       func() inspect.Znode { return below("/l", "", znodes(always("lock-"), nothing)...) },
		"readers":                  func() inspect.Znode { return below("/l", "", znodes(always("__READ__"), party)...) },
		"readers behind a writer":  func() inspect.Znode { return below("/l", "", znodes(writerFirst, party)...) },
		"a semaphore with permits": holders,
		"a semaphore with a queue": queue,
		"names of no known lock":   func() inspect.Znode { return below("/l", "", znodes(always("part-"), nothing)...) },
		"numbers of an old directory": func() inspect.Znode {
			return below("/l", "", znodes(func(i int) string { return "lock-" + strings.Repeat("-", i%2) }, party)...)
		},
	}
}

// TestCrowds has the locks of thousands of contenders read and diagnosed. With the square of
// their number it would take minutes, and longer than the test's time limit with the third power.
func TestCrowds(t *testing.T) {
	t.Parallel()
	const n = 4_000
	for name, of := range crowds(n) {
		l, _ := inspect.Of(of())
		s := inspect.Snapshot{Locks: []inspect.Lock{l}}
		found := inspect.Deadlocks(s, later(s))
		if certain := partiesOf(found, inspect.Error); len(certain) > 0 {
			t.Errorf("%s: errors about %d parties", name, len(certain))
		}
		want := n
		switch name {
		case "names of no known lock":
			want = 0
		case "a semaphore with a queue":
			want = n + 1 // the first one's two znodes are one contender
		}
		if len(l.Contenders) != want {
			t.Errorf("%s: %d contenders, want %d", name, len(l.Contenders), want)
		}
	}
}

// TestChains: each owner holds a lock and waits for the next one, in orders that could cost the square of
// their number. The last one goes on, unless the chain is a ring.
func TestChains(t *testing.T) {
	t.Parallel()
	const n = 2_000
	for name, next := range map[string]func(i int) int{
		"forwards": func(i int) int { return i + 1 }, "backwards": func(i int) int { return i - 1 },
		"a ring": func(i int) int { return (i + 1) % n },
	} {
		var s inspect.Snapshot
		data := func(i int) string { return metadata(lease.Metadata{Party: fmt.Sprint(i)}) }
		for i := range n {
			znodes := []znode{{guid + "lock-0000000000", int64(i + 1), int64(i + 1), data(i)}}
			for _, waiter := range []int{i - 1, i + 1, i - 1 + n} {
				if waiter >= 0 && waiter < n && next(waiter) == i {
					znodes = append(znodes, znode{guid + "lock-0000000001", int64(waiter + 1), int64(n + waiter + 1), data(waiter)})
				}
			}
			l, _ := inspect.Of(below(fmt.Sprintf("/%d", i), "", znodes...))
			s.Locks = append(s.Locks, l)
		}
		found := inspect.Deadlocks(s, later(s))
		if name != "a ring" && len(found) > 0 {
			t.Errorf("%s: %d findings", name, len(found))
		}
		if name == "a ring" && (len(found) != 1 || len(found[0].Parties) != n || len(found[0].Edges) != n || found[0].Severity != inspect.Error) {
			t.Errorf("%s: %d findings", name, len(found))
		}
	}
}
