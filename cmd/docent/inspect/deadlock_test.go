package inspect_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/recipes/lease"
)

// TestDeadlocksAreThoseWhereNoOwnerGoesOn compares the findings with systems that are run to their end.
func TestDeadlocksAreThoseWhereNoOwnerGoesOn(t *testing.T) {
	t.Parallel()
	stuck := map[string]int{}
	for seed := range uint64(1_500) {
		pick := rand.New(rand.NewPCG(seed, 7))
		s, several := newSystem(pick), seed%2 == 0
		for range 3 + pick.IntN(20) {
			s.act(pick, several)
		}
		var first, second inspect.Snapshot
		second.At = first.At.Add(time.Second)
		for lock := range s.locks {
			s.add(&first, lock)
			s.add(&second, lock)
		}
		certain, possible := s.stuck(true), s.stuck(false)
		found := inspect.Deadlocks(first, second)
		got, own := partiesOf(found, inspect.Error), partiesOf(ownPermits(found), inspect.Warning)
		want := slices.DeleteFunc(names(certain), func(name string) bool { return slices.Contains(own, name) && !slices.Contains(got, name) })
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: errors about %v, want %v\n%s", seed, got, want, shown(first, found))
		}
		if (len(found) > 0) != (len(possible) > 0) {
			t.Fatalf("seed %d: %d findings, %v are stuck\n%s", seed, len(found), possible, shown(first, found))
		}
		for _, name := range partiesOf(found, inspect.Warning) {
			if !slices.Contains(names(possible), name) {
				t.Fatalf("seed %d: a warning about %s, which goes on\n%s", seed, name, shown(first, found))
			}
		}
		stuck[fmt.Sprintf("%v %v", len(certain) > 0, len(possible) > 0)]++
	}
	for _, kind := range []string{"true true", "false true", "false false"} {
		if stuck[kind] < 20 {
			t.Errorf("stuck for certain and possibly: %s in %d systems alone: %v", kind, stuck[kind], stuck)
		}
	}
}

// TestAConfirmedDeadlockExisted reads the locks of a system one after another, twice, while its owners
// go on. All edges of each confirmed deadlock exist at one instant between the two.
func TestAConfirmedDeadlockExisted(t *testing.T) {
	t.Parallel()
	confirmed, phantoms := 0, 0
	for seed := range uint64(1_500) {
		pick := rand.New(rand.NewPCG(seed, 8))
		s := newSystem(pick)
		for range 10 {
			s.act(pick, false)
		}
		read := func(pace int) (all inspect.Snapshot) {
			for lock := range s.locks {
				s.add(&all, lock)
				for range pick.IntN(pace) {
					s.act(pick, false)
				}
			}
			return all
		}
		first := read(4)
		between := s.clone()
		second := read(4)
		second.At = first.At.Add(time.Second)
		for _, f := range inspect.Deadlocks(first, second) {
			confirmed++
			if stuck := names(between.stuck(true)); f.Severity == inspect.Error && !contains(stuck, f.Parties) {
				t.Fatalf("seed %d: %v were not stuck between the snapshots, but %v", seed, f.Parties, stuck)
			}
		}
		for _, f := range inspect.Deadlocks(second, second) {
			if !contains(names(s.stuck(true)), f.Parties) {
				phantoms++
			}
			if f.Confirmed {
				t.Fatal("confirmed by one snapshot")
			}
		}
	}
	if confirmed < 20 || phantoms == 0 {
		t.Errorf("%d deadlocks, and %d of one snapshot that did not exist: too few to show anything", confirmed, phantoms)
	}
}

func contains(owners []string, parties []inspect.Party) bool {
	return !slices.ContainsFunc(parties, func(p inspect.Party) bool { return !slices.Contains(owners, p.Owner) })
}

func names(owners []int) []string {
	var all []string
	for _, owner := range owners {
		all = append(all, ownerName(owner))
	}
	return all
}

// partiesOf returns the names of the parties in findings of the severity, and of those behind them.
func partiesOf(found []inspect.Finding, severity inspect.Severity) []string {
	var all []string
	for _, f := range found {
		for _, p := range append(slices.Clone(f.Parties), f.Behind...) {
			if f.Severity == severity {
				all = append(all, p.Owner)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ownPermits returns the findings about owners that wait for permits of their own alone.
func ownPermits(found []inspect.Finding) []inspect.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f inspect.Finding) bool {
		return f.Problem != inspect.SelfWait || f.Edges[0].Waiter.Side != inspect.Permit
	})
}

func shown(s inspect.Snapshot, found []inspect.Finding) string {
	var b strings.Builder
	for _, e := range s.Edges() {
		fmt.Fprintf(&b, "%s: %s waits for %s, which holds: %v\n", e.Lock, e.Waiter.Meta.Owner, e.Blocker.Meta.Owner, e.Direct)
	}
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s %v behind %v\n", f.Severity, f.Problem, f.Parties, f.Behind)
	}
	return b.String()
}

// twoMutexes returns a deadlock of two mutexes, whose contenders have the data.
func twoMutexes(data func(owner int) (session int64, data string)) inspect.Snapshot {
	var s inspect.Snapshot
	for lock, owners := range [][]int{{1, 2}, {2, 1}} {
		var znodes []znode
		for i, owner := range owners {
			session, d := data(owner)
			znodes = append(znodes, znode{fmt.Sprintf("%slock-%010d", guid, i), session, int64(10*i + lock + 1), d}) // all hold, then wait
		}
		l, _ := inspect.Of(below(fmt.Sprintf("/%c", 'a'+lock), "", znodes...))
		s.Locks = append(s.Locks, l)
	}
	return s
}

func later(s inspect.Snapshot) inspect.Snapshot {
	s.At = s.At.Add(2 * time.Second)
	return s
}

func TestDeadlocks_say_how_certain_they_are(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data     func(owner int) (int64, string)
		severity inspect.Severity // "" for no finding
		strength inspect.Strength
	}{
		"exact, one session": {
			func(owner int) (int64, string) { return 7, metadata(lease.Metadata{Party: ownerName(owner)}) },
			inspect.Error, inspect.Exact,
		},
		"named": {
			func(owner int) (int64, string) { return 7, metadata(lease.Metadata{Owner: ownerName(owner)}) },
			inspect.Error, inspect.Named,
		},
		"Curator, two processes": {
			func(owner int) (int64, string) { return int64(owner), "10.0.3.9" }, inspect.Warning, inspect.BySession,
		},
		"one exact, one of Curator": {
			func(owner int) (int64, string) {
				if owner == 1 {
					return 1, metadata(lease.Metadata{Party: "p"})
				}
				return 2, "10.0.3.9"
			}, inspect.Warning, inspect.BySession,
		},
		"handed on inside the process": {
			func(owner int) (int64, string) {
				return int64(owner), metadata(lease.Metadata{Party: ownerName(owner), Handoff: true})
			}, inspect.Warning, inspect.BySession,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twoMutexes(test.data)
			found := inspect.Deadlocks(s, later(s))
			if len(found) != 1 {
				t.Fatalf("found %+v", found)
			}
			f := found[0]
			if f.Severity != test.severity || f.Strength != test.strength || !f.Confirmed || f.Problem != inspect.Deadlock {
				t.Errorf("found %s %s %s, confirmed %v", f.Severity, f.Problem, f.Strength, f.Confirmed)
			}
			if len(f.Parties) != 2 || len(f.Edges) != 2 || !strings.HasSuffix(f.Text, "seen twice 2.0s apart") || f.Advice == "" {
				t.Errorf("found %v, %d edges, %q, %q", f.Parties, len(f.Edges), f.Text, f.Advice)
			}
		})
	}
}

// TestDeadlocks_of_one_owner: what an owner waits for and holds itself, and what it may have lost.
func TestDeadlocks_of_one_owner(t *testing.T) {
	t.Parallel()
	locked := func(dir inspect.Znode) inspect.Snapshot {
		l, _ := inspect.Of(dir)
		return inspect.Snapshot{Locks: []inspect.Lock{l}}
	}
	twice := func(first, second int64, data, again string) inspect.Snapshot {
		return locked(dir("", znode{guid + "lock-0000000001", first, 1, data}, znode{guid + "lock-0000000002", second, 2, again}))
	}
	of := func(pid int) string { return metadata(lease.Metadata{Host: "h", PID: pid, Party: "p"}) }
	party := metadata(lease.Metadata{Party: "p"})
	// The owner 1 holds by session 1, and waits by this one.
	ofTwo := func(session int64) inspect.Snapshot {
		contends := map[int]int{}
		return twoMutexes(func(owner int) (int64, string) {
			data := metadata(lease.Metadata{Host: "h", PID: owner, Party: ownerName(owner)})
			if contends[owner]++; owner == 1 && contends[owner] == 2 {
				return session, data
			}
			return int64(owner), data
		})
	}
	for name, test := range map[string]struct {
		snapshot inspect.Snapshot
		problem  inspect.Problem
		severity inspect.Severity
		lost     bool // it says that a session may be lost
	}{
		"a lock that is not reentrant was locked twice": {twice(7, 7, party, party), inspect.SelfWait, inspect.Error, false},
		"a session alone waits for itself":              {twice(7, 7, "10.0.3.9", "10.0.3.9"), inspect.SelfWait, inspect.Info, false},
		// The znode of the lost session exists until its timeout, so the wait ends by itself.
		"a process has lost its session, and contends by the next one": {twice(0x11, 0x12, of(7), of(7)), inspect.SelfWait, inspect.Warning, true},
		"two processes of one party, as nested programs are":           {twice(0x11, 0x12, of(7), of(8)), inspect.SelfWait, inspect.Error, false},
		"a lost session holds what another owner waits for":            {ofTwo(9), inspect.Deadlock, inspect.Warning, true},
		"two owners wait for each other":                               {ofTwo(1), inspect.Deadlock, inspect.Error, false},
		// Its workers release them. That is how work is bounded.
		"a goroutine acquires permits, and waits for one more": {
			locked(inspect.Znode{Path: "/l", Children: []inspect.Znode{
				below("/l/leases", "", znode{guid + "lease-0000000001", 7, 1, of(7)}, znode{guid + "lease-0000000002", 7, 2, of(7)}, znode{guid + "lease-0000000003", 7, 4, of(7)}),
				below("/l/locks", "", znode{guid + "lock-0000000003", 7, 3, of(7)}),
			}}), inspect.SelfWait, inspect.Warning, false,
		},
	} {
		found := inspect.Deadlocks(test.snapshot, later(test.snapshot))
		if len(found) != 1 || found[0].Problem != test.problem || found[0].Severity != test.severity {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		f := found[0]
		if exact := f.Strength == inspect.Exact; exact != (f.Severity != inspect.Info) || f.Problem == inspect.SelfWait && f.Path != "/l" {
			t.Errorf("%s: found %+v", name, f)
		}
		if lost := strings.Contains(f.Advice, "newer session"); lost != test.lost {
			t.Errorf("%s: %s", name, f.Advice)
		}
		if possible := strings.HasPrefix(f.Text, "possible: "); possible != (f.Severity != inspect.Error) {
			t.Errorf("%s: %s", name, f.Text)
		}
	}
}

// An entry is a contender of Curator: its session, and the transaction of its znode.
type entry struct{ session, czxid int64 }

// curators returns the snapshot of mutexes with these queues.
func curators(queues map[string][]entry) inspect.Snapshot {
	var s inspect.Snapshot
	for _, path := range slices.Sorted(maps.Keys(queues)) {
		var znodes []znode
		for i, e := range queues[path] {
			znodes = append(znodes, znode{fmt.Sprintf("%slock-%010d", guid, i), e.session, e.czxid, "10.0.3.9"})
		}
		l, _ := inspect.Of(below(path, "", znodes...))
		s.Locks = append(s.Locks, l)
	}
	return s
}

// TestDeadlocks_of_sessions: a session may have several threads, of which each has one wait, and has
// acquired before it what it holds.
func TestDeadlocks_of_sessions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		queues   map[string][]entry
		severity inspect.Severity // "" for no finding
		locks    []string
	}{
		"each holds one lock and waits for the other": {
			map[string][]entry{"/a": {{1, 1}, {2, 4}}, "/b": {{2, 2}, {1, 3}}}, inspect.Warning, []string{"/a", "/b"},
		},
		"a hold is newer than the wait: another thread's": {
			map[string][]entry{"/a": {{1, 1}, {2, 2}}, "/b": {{2, 3}, {1, 4}}}, "", nil,
		},
		"another thread waits, too": {
			map[string][]entry{"/a": {{1, 1}, {2, 4}}, "/b": {{2, 2}, {1, 3}}, "/c": {{3, 5}, {1, 6}}}, inspect.Info, []string{"/a", "/b"},
		},
		"a lock outside of the cycle": {
			map[string][]entry{"/a": {{1, 1}, {2, 14}}, "/b": {{2, 2}, {1, 13}}, "/c": {{1, 15}, {2, 16}}}, inspect.Info, []string{"/a", "/b"},
		},
		"two threads of each, one lock at a time": {
			map[string][]entry{"/a": {{1, 11}, {2, 2}}, "/b": {{2, 12}, {1, 1}}}, "", nil,
		},
		"the wait behind another thread's wait": {
			map[string][]entry{"/a": {{1, 1}, {3, 5}, {2, 6}}, "/b": {{2, 2}, {1, 7}}}, inspect.Warning, []string{"/a", "/b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := curators(test.queues)
			found := inspect.Deadlocks(s, later(s))
			if test.severity == "" {
				if len(found) > 0 {
					t.Errorf("found %+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Severity != test.severity || found[0].Problem != inspect.Deadlock {
				t.Fatalf("found %+v", found)
			}
			var locks []string
			for _, e := range found[0].Edges {
				locks = append(locks, e.Lock)
			}
			if slices.Sort(locks); !slices.Equal(slices.Compact(locks), test.locks) {
				t.Errorf("the edges are at %v, want %v", locks, test.locks)
			}
		})
	}
}

// TestDeadlock_of_many_threads is a cycle of two sessions that have 2,000 threads each.
func TestDeadlock_of_many_threads(t *testing.T) {
	t.Parallel()
	queues := make(map[string][]entry)
	for i := range int64(2_000) {
		queues[fmt.Sprintf("/a%04d", i)] = []entry{{1, 4*i + 4}, {2, 20_000 - 4*i}}
		queues[fmt.Sprintf("/b%04d", i)] = []entry{{2, 4*i + 5}, {1, 20_001 - 4*i}}
	}
	s := curators(queues)
	if found := inspect.Deadlocks(s, later(s)); len(found) != 1 || found[0].Severity != inspect.Info {
		t.Errorf("%d findings", len(found))
	}
}
