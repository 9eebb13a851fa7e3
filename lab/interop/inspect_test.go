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

// TestInspectAndCurator compares package inspect with the lists of Curator's recipes, and with what the
// processes were granted.
func TestInspectAndCurator(t *testing.T) {
	t.Parallel()
	for _, k := range queued {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			at, side := pathOf(t), map[string]inspect.Side{"mutex": inspect.Alone, "read": inspect.Shared, "write": inspect.Writer}[k.foreign]
			ours, theirs, last := k.native(t, at), k.foreigner(t, curator, at), k.foreigner(t, curator, at)
			mustLock(t, theirs)
			queue := queueUp(t, ours.client, at, ours, last)
			l, seen := sightsOf(t, ours.client, at)
			waits := inspect.Waits
			if k.shared {
				waits = inspect.Holds
			}
			want := []sight{
				{theirs.session, inspect.Holds, side, inspect.Curator},
				{ours.sessionID(), waits, side, inspect.Docent},
				{last.session, waits, side, inspect.Curator},
			}
			if !slices.Equal(seen, want) {
				t.Errorf("inspect shows %+v, want %+v", seen, want)
			}
			if list := last.listed(t, at, k.foreign); !slices.Equal(list, znodesOf(l)) {
				t.Errorf("Curator lists\n%q, inspect\n%q", list, znodesOf(l))
			}
			mustUnlock(t, theirs)
			mustGet(t, queue[0], "the second")
			mustUnlock(t, ours)
			mustGet(t, queue[1], "the third")
			mustUnlock(t, last)
		})
	}
	t.Run("Read and write", func(t *testing.T) {
		t.Parallel()
		at := pathOf(t)
		reader, writer, second := readers.foreigner(t, curator, at), writers.foreigner(t, curator, at), readers.foreigner(t, curator, at)
		c := newClient(t)
		mustLock(t, reader)
		queue := queueUp(t, c, at, writer, second)
		l, seen := sightsOf(t, c, at)
		want := []sight{
			{reader.session, inspect.Holds, inspect.Shared, inspect.Curator},
			{writer.session, inspect.Waits, inspect.Writer, inspect.Curator},
			{second.session, inspect.Waits, inspect.Shared, inspect.Curator},
		}
		if !slices.Equal(seen, want) || l.Kind != inspect.ReadWrite {
			t.Errorf("inspect shows %+v, want %+v", seen, want)
		}
		for kind, side := range map[string]inspect.Side{"read": inspect.Shared, "write": inspect.Writer} {
			var own []string
			for _, contender := range l.Contenders {
				if contender.Side == side {
					own = append(own, contender.Znode)
				}
			}
			// The actor of another session lists, because those that wait are busy.
			if list := newActor(t, curator).contender(kind, at).listed(t, at, kind); !slices.Equal(list, own) {
				t.Errorf("Curator lists for %s\n%q, inspect\n%q", kind, list, own)
			}
		}
		mustUnlock(t, reader)
		mustGet(t, queue[0], "the writer")
		mustUnlock(t, writer)
		mustGet(t, queue[1], "the second reader")
		mustUnlock(t, second)
	})
	t.Run("Semaphore", func(t *testing.T) { t.Parallel(); inspectCuratorsSemaphore(t) })
}

// listed returns the znodes that Curator lists. An actor of its own lists, because one that waits is busy.
func (f *foreigner) listed(t testing.TB, at, kind string) []string {
	t.Helper()
	return newActor(t, curator).must(t, "participants", kind, at)
}

func znodesOf(l inspect.Lock) []string {
	var all []string
	for _, c := range l.Contenders {
		all = append(all, c.Znode)
	}
	return all
}

// inspectCuratorsSemaphore has two holders and two waiters at a semaphore of two permits.
func inspectCuratorsSemaphore(t *testing.T) {
	t.Helper()
	at, c := pathOf(t), newClient(t)
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
	list := newActor(t, curator).must(t, "permits", at, "2")
	for i := range list {
		list[i] = path.Base(list[i])
	}
	slices.Sort(own)
	slices.Sort(list)
	if !slices.Equal(list, own) {
		t.Errorf("Curator lists the permits\n%q, inspect\n%q", list, own)
	}
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
	for name, kinds := range map[string][]string{
		"Lock":           {"lock-named", "lock-named", "lock-named"},
		"Write and read": {"write-named", "read-named", "read-named"}, // a writer behind them ends all: kazoo#649
		"Read and write": {"read-named", "read-named", "write-named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, c := pathOf(t), newClient(t)
			var all []*foreigner
			for _, kind := range kinds {
				all = append(all, newActor(t, kazoo).contender(kind, at))
			}
			mustLock(t, all[0])
			held := []*foreigner{all[0]}
			var queue []<-chan outcome
			for _, f := range all[1:] {
				granted := lockLater(t, f)
				awaitQueued(t, c, at, f)
				if f.kind == "read-named" && all[0].kind == f.kind {
					mustGet(t, granted, "the second reader")
					held = append(held, f)
					continue
				}
				queue = append(queue, granted)
			}
			l, seen := sightsOf(t, c, at)
			var want []sight
			var ids []string
			for _, f := range all {
				state, side := inspect.Waits, map[string]inspect.Side{"read-named": inspect.Shared, "write-named": inspect.Writer, "lock-named": inspect.Alone}[f.kind]
				if slices.Contains(held, f) {
					state = inspect.Holds
				}
				want = append(want, sight{f.session, state, side, inspect.Kazoo})
				ids = append(ids, fmt.Sprint(f.session))
			}
			if !slices.Equal(seen, want) {
				t.Errorf("inspect shows %+v, want %+v", seen, want)
			}
			list := newActor(t, kazoo).must(t, "contenders", "write-named", at) // the readers', too
			for i := range list {
				list[i] = decoded(t, list[i])
			}
			if labels := labelsOf(l); !slices.Equal(list, labels) || !slices.Equal(list, ids) {
				t.Errorf("kazoo lists %q, inspect %q; want %q", list, labels, ids)
			}
			for _, f := range held {
				mustUnlock(t, f)
			}
			for i, granted := range queue {
				mustGet(t, granted, "the next")
				mustUnlock(t, all[len(held)+i])
			}
		})
	}
	t.Run("Semaphore", func(t *testing.T) { t.Parallel(); inspectKazoosSemaphore(t) })
}

func labelsOf(l inspect.Lock) []string {
	var all []string
	for _, c := range l.Contenders {
		all = append(all, c.Label)
	}
	return all
}

// inspectKazoosSemaphore has two holders and two waiters, whose znodes are in another directory.
func inspectKazoosSemaphore(t *testing.T) {
	t.Helper()
	at, c := pathOf(t), newClient(t)
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
	for i := range list {
		list[i] = decoded(t, list[i])
	}
	own := labelsOf(inspect.Lock{Contenders: l.Holders()})
	slices.Sort(list)
	slices.Sort(own)
	if !slices.Equal(list, own) {
		t.Errorf("kazoo lists the holders %q, inspect %q", list, own)
	}
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
