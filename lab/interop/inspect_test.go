package interop_test

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/testing/zktest"
)

// A sight is what a test compares of a contender.
type sight struct {
	session int64
	state   inspect.State
	side    inspect.Side
	by      inspect.Library
}

// sightsOf returns the contenders of the lock as package inspect reads it, and as it finds it in a scan.
func sightsOf(t testing.TB, c *framework.Client, at string) (inspect.Lock, []sight) {
	t.Helper()
	l, err := inspect.Read(t.Context(), c, at)
	if err != nil {
		t.Fatal(err)
	}
	dir, name := zkpath.Split(at)
	s, err := inspect.Scan(t.Context(), c, dir, inspect.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, l := range s.Locks {
		if strings.Contains(l.Path, name) {
			found = append(found, l.Path)
		}
	}
	if scanned, _ := s.Lock(at); !slices.Equal(found, []string{at}) || !slices.Equal(sights(scanned), sights(l)) {
		t.Errorf("a scan finds %v: %+v; want one lock: %+v", found, scanned, l)
	}
	return l, sights(l)
}

func sights(l inspect.Lock) []sight {
	var all []sight
	for _, c := range l.Contenders {
		all = append(all, sight{c.Session, c.State, c.Side, c.By})
	}
	return all
}

// sidesOf are those of the kinds in drivers.
var sidesOf = map[string]inspect.Side{
	"mutex": inspect.Alone, "read": inspect.Shared, "write": inspect.Writer,
	"lock-named": inspect.Alone, "read-named": inspect.Shared, "write-named": inspect.Writer,
}

// inspected queues the contenders for a lock one behind the other, and compares package inspect with what the
// processes were granted. list compares it with the library's own list.
func inspected(t *testing.T, at string, kinds []kind, contenders []contender, by []inspect.Library, list func(l inspect.Lock)) {
	t.Helper()
	c := newClient(t)
	var want []sight
	var granted []<-chan outcome
	holding := 0
	for i, k := range kinds {
		granted = append(granted, queueUp(t, c, at, contenders[i])[0])
		state := inspect.Waits
		if i == holding && (i == 0 || k.shared && kinds[0].shared) {
			mustGet(t, granted[i], "a holder")
			state = inspect.Holds
			holding++
		}
		want = append(want, sight{contenders[i].sessionID(), state, sidesOf[k.foreign], by[i]})
	}
	l, seen := sightsOf(t, c, at)
	if !slices.Equal(seen, want) {
		t.Errorf("inspect shows %+v, want %+v", seen, want)
	}
	list(l)
	for i := range contenders {
		if i >= holding {
			mustGet(t, granted[i], "the next")
		}
		mustUnlock(t, contenders[i])
	}
}

// TestInspectAndCurator compares package inspect with the lists of Curator's recipes.
func TestInspectAndCurator(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]kind{
		"Mutex": {mutexes, mutexes, mutexes}, "Write": {writers, writers, writers}, "Read": {readers, readers, readers},
		"Read and write": {readers, writers, readers},
	} {
		sub(t, name, func(t *testing.T, at string) {
			contenders := []contender{kinds[0].foreigner(t, curator, at), kinds[1].native(t, at), kinds[2].foreigner(t, curator, at)}
			by := []inspect.Library{inspect.Curator, inspect.Docent, inspect.Curator}
			inspected(t, at, kinds, contenders, by, func(l inspect.Lock) {
				for _, k := range kinds {
					var own []string
					for _, c := range l.Contenders {
						if c.Side == sidesOf[k.foreign] {
							own = append(own, c.Znode)
						}
					}
					// An actor of its own lists, because one that waits is busy.
					if list := newActor(t, curator).must(t, "participants", k.foreign, at); !slices.Equal(list, own) {
						t.Errorf("Curator lists for %s\n%q, inspect\n%q", k.name, list, own)
					}
				}
			})
		})
	}
	sub(t, "Semaphore", inspectCuratorsSemaphore)
}

// inspectCuratorsSemaphore has two holders and two waiters at a semaphore of two permits.
func inspectCuratorsSemaphore(t *testing.T, at string) {
	t.Helper()
	c := newClient(t)
	held, first, second := newActor(t, curator), newActor(t, curator), newActor(t, curator)
	if !held.acquires(t, at, "2", 2, generous) {
		t.Fatal("Curator did not get its permits")
	}
	ask := func(a *actor) *call {
		answer := a.do("acquire", at, "2", "1", strconv.FormatInt(generous.Milliseconds(), 10))
		zktest.Eventually(t, generous, "it waits", func() bool {
			l, err := inspect.Read(t.Context(), c, at)
			return err == nil && slices.ContainsFunc(l.Waiters(), func(c inspect.Contender) bool { return c.Session == a.session })
		})
		return answer
	}
	waits := []*call{ask(first), ask(second)}
	zktest.Eventually(t, generous, "the first waiter has a znode among the permits", func() bool {
		l, err := inspect.Read(t.Context(), c, at)
		return err == nil && l.Permits == 2
	})
	l, seen := sightsOf(t, c, at)
	want := []sight{
		{held.session, inspect.Holds, inspect.Permit, inspect.Curator},
		{held.session, inspect.Holds, inspect.Permit, inspect.Curator},
		{first.session, inspect.Waits, inspect.Permit, inspect.Curator},
		{second.session, inspect.Waits, inspect.Permit, inspect.Curator},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("inspect shows %+v, want %+v", seen, want)
	}
	var own []string
	for _, c := range l.Contenders {
		if dir, name := path.Split(c.Znode); strings.HasSuffix(dir, "/leases/") {
			own = append(own, name)
		}
	}
	sameNames(t, newActor(t, curator).must(t, "permits", at, "2"), own, path.Base)
	held.must(t, "release", at)
	for _, w := range waits {
		if _, ok, err := w.wait(); err != nil || !ok {
			t.Errorf("Curator: %v, %v; want a permit", ok, err)
		}
	}
	if _, seen := sightsOf(t, c, at); len(seen) != 2 || seen[0].state != inspect.Holds || seen[1].state != inspect.Holds {
		t.Errorf("inspect shows %+v, want two holders", seen)
	}
	first.must(t, "release", at)
	second.must(t, "release", at)
	awaitFree(t, c, at)
}

// TestInspectAndKazoo compares package inspect with the lists of kazoo's recipes, under kazoo's own names.
func TestInspectAndKazoo(t *testing.T) {
	t.Parallel()
	locks, reads, writes := renamed(mutexes, "lock-named"), renamed(readers, "read-named"), renamed(writers, "write-named")
	for name, kinds := range map[string][]kind{
		"Lock":           {locks, locks, locks},
		"Write and read": {writes, reads, reads}, // a writer behind them ends all: kazoo#649
		"Read and write": {reads, reads, writes},
	} {
		sub(t, name, func(t *testing.T, at string) {
			var contenders []contender
			var ids []string
			for _, k := range kinds {
				f := k.foreigner(t, kazoo, at)
				contenders, ids = append(contenders, f), append(ids, fmt.Sprint(f.session))
			}
			inspected(t, at, kinds, contenders, slices.Repeat([]inspect.Library{inspect.Kazoo}, len(kinds)), func(l inspect.Lock) {
				list := newActor(t, kazoo).must(t, "contenders", "write-named", at) // the readers', too
				for i := range list {
					list[i] = decoded(t, list[i])
				}
				if labels := labelsOf(l); !slices.Equal(list, labels) || !slices.Equal(list, ids) {
					t.Errorf("kazoo lists %q, inspect %q; want %q", list, labels, ids)
				}
			})
		})
	}
	sub(t, "Semaphore", inspectKazoosSemaphore)
}

// sameNames compares a library's list of holders, whose words stand for names, with that of package inspect.
func sameNames(t testing.TB, list, own []string, name func(word string) string) {
	t.Helper()
	for i := range list {
		list[i] = name(list[i])
	}
	slices.Sort(own)
	slices.Sort(list)
	if !slices.Equal(list, own) {
		t.Errorf("the library lists the holders\n%q, inspect\n%q", list, own)
	}
}

func labelsOf(l inspect.Lock) []string {
	var all []string
	for _, c := range l.Contenders {
		all = append(all, c.Label)
	}
	return all
}

// inspectKazoosSemaphore has two holders and two waiters, whose znodes are in another directory.
func inspectKazoosSemaphore(t *testing.T, at string) {
	t.Helper()
	c := newClient(t)
	var all []*foreigner
	var want []sight
	for i := range 4 {
		state := inspect.Holds
		if i > 1 {
			state = inspect.Waits
		}
		all = append(all, newActor(t, kazoo).contender("semaphore-named", at))
		want = append(want, sight{all[i].session, state, inspect.Permit, inspect.Kazoo})
	}
	mustLock(t, all[0])
	mustLock(t, all[1])
	granted := []<-chan outcome{lockLater(t, all[2])}
	awaitQueued(t, c, at+"-__lock__", all[2])
	granted = append(granted, lockLater(t, all[3]))
	awaitQueued(t, c, at+"-__lock__", all[3])

	l, seen := sightsOf(t, c, at)
	if !slices.Equal(seen, want) || l.Kind != inspect.Semaphore || l.Permits != 2 {
		t.Errorf("inspect shows a %s of %d: %+v; want %+v", l.Kind, l.Permits, seen, want)
	}
	list := newActor(t, kazoo).must(t, "holders", "semaphore-named", at)
	sameNames(t, list, labelsOf(inspect.Lock{Contenders: l.Holders()}), func(word string) string { return decoded(t, word) })
	if first := l.Waiters()[0]; !first.AnyOf || len(first.WaitsFor) != 2 {
		t.Errorf("the first waits for %q, any of them %v; want any of two", first.WaitsFor, first.AnyOf)
	}
	mustUnlock(t, all[0])
	mustGet(t, granted[0], "the first waiter")
	mustUnlock(t, all[1])
	mustGet(t, granted[1], "the second waiter")
	mustUnlock(t, all[2])
	mustUnlock(t, all[3])
}
