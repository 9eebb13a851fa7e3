package inspect_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
)

// kazooSemaphore makes a semaphore of kazoo at the path: holders, and waiters in the queue next to it.
func kazooSemaphore(t testing.TB, c *framework.Client, path string, permits, holders, waiters int) {
	t.Helper()
	mustCreate(t, c, path, fmt.Sprint(permits))
	mustCreate(t, c, path+"-__lock__", "")
	for i := range holders {
		mustCreate(t, c, fmt.Sprintf("%s/%032x", path, i), "", framework.Ephemeral())
	}
	for i := range waiters {
		mustCreate(t, c, fmt.Sprintf("%s-__lock__/%032x__lock__", path, i), "", framework.Ephemeral(), framework.Sequential())
	}
}

// TestKazooSemaphore: the waiters, which queue in a directory next to the holders', belong to one lock.
func TestKazooSemaphore(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		live := follow(t, c, "/")
		kazooSemaphore(t, c, "/a/full", 2, 2, 2)
		kazooSemaphore(t, c, "/a/free", 2, 0, 1)
		want := map[string]string{
			"/a/full": "semaphore 2; 00 holds permit kazoo; 01 holds permit kazoo; 00 waits permit kazoo for 00|01; 01 waits permit kazoo for 00",
			"/a/free": "semaphore 2; 00 waits permit kazoo",
		}
		settle()
		for what, s := range map[string]inspect.Snapshot{"Scan": mustScan(t, c, "/", inspect.Limits{}), "Live": live.View().Snapshot} {
			if !slices.Equal(paths(s), []string{"/a/free", "/a/full"}) || !s.Complete || len(s.Unread) > 0 {
				t.Errorf("%s found %v, unread %v", what, paths(s), s.Unread)
			}
			for path, want := range want {
				if l, _ := s.Lock(path); brief(l) != want || !l.Complete {
					t.Errorf("%s of %s:\ngot  %s\nwant %s", what, path, brief(l), want)
				}
			}
		}
		for path, want := range want {
			if got := brief(mustRead(t, c, path)); got != want {
				t.Errorf("Read of %s:\ngot  %s\nwant %s", path, got, want)
			}
		}
	})
}

// TestKazooLock_next_to_another_directory is a lock, and no semaphore's queue.
func TestKazooLock_next_to_another_directory(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		live := follow(t, c, "/")
		mustCreate(t, c, "/a/jobs/config", "")
		mustCreate(t, c, "/a/secret", "", hidden())
		contender(t, c, "/a/report", "")
		var want []string
		for _, path := range []string{"/a/jobs", "/a/report", "/a/secret"} {
			mustCreate(t, c, fmt.Sprintf("%s-__lock__/%032x__lock__", path, 1), "", framework.Ephemeral(), framework.Sequential())
			want = append(want, path+"-__lock__")
		}
		want = slices.Insert(want, 1, "/a/report")
		if s := mustScan(t, c, "/", inspect.Limits{}); !slices.Equal(paths(s), want) {
			t.Errorf("Scan found %v, want %v", paths(s), want)
		}
		if err := c.Delete(t.Context(), "/a/secret"); err != nil { // a Live needs to read all
			t.Fatal(err)
		}
		settle()
		settle()
		if got := paths(live.View().Snapshot); !slices.Equal(got, want) {
			t.Errorf("Live found %v, want %v", got, want)
		}
		if l := mustRead(t, c, "/a/jobs-__lock__"); l.Kind != inspect.Mutex || len(l.Contenders) != 1 {
			t.Errorf("Read: %s", brief(l))
		}
	})
}

// TestKazooSemaphore_in_a_deadlock: sessions hold what others wait for.
func TestKazooSemaphore_in_a_deadlock(t *testing.T) {
	t.Parallel()
	waiter := func(session int64) znode { return znode{hexID + "__lock__0000000003", session, 9, ""} }
	semaphore := func(permits string, first, second, waits int64) inspect.Znode {
		z := queued(below("/s", permits, znode{hexID, first, 5, ""}, znode{hexID[1:] + "a", second, 6, ""}), waiter(waits))
		z.Path = "/s"
		return z
	}
	mutex := below("/m", "", znode{guid + "lock-0000000001", 3, 7, ""}, znode{guid + "lock-0000000002", 1, 8, ""})
	for name, test := range map[string]struct {
		dir  inspect.Znode
		want int
	}{
		"all holders wait":             {semaphore("2", 1, 1, 3), 1},
		"one holder goes on":           {semaphore("2", 1, 2, 3), 0},
		"another permit is free":       {semaphore("3", 1, 1, 3), 0},
		"the permits are not known":    {semaphore("", 1, 1, 3), 0},
		"another session waits for it": {semaphore("2", 1, 1, 4), 0},
	} {
		s := inspect.Snapshot{}
		for _, dir := range []inspect.Znode{test.dir, mutex} {
			l, ok := inspect.Of(dir)
			if !ok {
				t.Fatalf("%s: no lock at %s", name, dir.Path)
			}
			s.Locks = append(s.Locks, l)
		}
		found := inspect.Deadlocks(s, s)
		if len(found) != test.want || len(found) > 0 && (found[0].Severity != inspect.Warning || found[0].Strength != inspect.BySession) {
			t.Errorf("%s: %d findings, want %d: %+v", name, len(found), test.want, found)
		}
	}
}
