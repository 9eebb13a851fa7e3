package interop_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// kazooCases say which locks of kazoo and of others see each other. Curator's results equal
// docent's in every case.
//
// By default, kazoo's names for znodes are not contenders to other libraries, and theirs are none
// to kazoo. docent refuses a path with kazoo's names instead. With extra_lock_patterns (polite) it waits for others, which don't wait for it. A
// subclass with Curator's names (renamed) is a full contender.
var kazooCases = []struct {
	name  string
	kazoo string // kind in the driver
	other kind

	kazooWaits, otherWaits bool // behind a holder of the other library
}{
	{"Lock and Mutex ignore each other", "lock", mutexes, false, false},
	{"Lock with extra_lock_patterns waits for Mutex, which ignores it", "lock-polite", mutexes, true, false},
	{"Lock with Curator's names and Mutex exclude each other", "lock-renamed", mutexes, true, true},

	{"WriteLock and Write ignore each other", "write", writers, false, false},
	{"WriteLock with extra_lock_patterns waits for Write, which ignores it", "write-polite", writers, true, false},
	{"WriteLock with Curator's names and Write exclude each other", "write-renamed", writers, true, true},
	{"WriteLock with extra_lock_patterns waits for Read, which ignores it", "write-polite", readers, true, false},
	{"WriteLock with Curator's names and Read exclude each other", "write-renamed", readers, true, true},

	{"ReadLock and Write ignore each other", "read", writers, false, false},
	{"ReadLock with extra_lock_patterns waits for Write, which ignores it", "read-polite", writers, true, false},
	{"ReadLock with Curator's names and Write exclude each other", "read-renamed", writers, true, true},
	{"ReadLock with Curator's names and Read share", "read-renamed", readers, false, false},
}

func TestKazooLocks(t *testing.T) {
	t.Parallel()
	for _, c := range kazooCases {
		others := map[string]func(t testing.TB, path string) contender{
			docent:       func(t testing.TB, path string) contender { return c.other.native(t, path) },
			curator.name: func(t testing.TB, path string) contender { return c.other.foreigner(t, curator, path) },
		}
		for library, other := range others {
			t.Run(c.name+"/"+library, func(t *testing.T) {
				t.Parallel()
				// docent refuses to come second where it would ignore the holder.
				mixed := library == docent && !c.otherWaits && !c.other.shared && c.kazoo != "read-renamed" ||
					library == docent && strings.HasSuffix(c.kazoo, "-polite")
				for _, turn := range []struct {
					name  string
					path  string
					waits bool // who comes second
					kazoo bool // who comes first
				}{
					{"kazoo behind " + library, pathOf(t) + "-1", c.kazooWaits, false},
					{library + " behind kazoo", pathOf(t) + "-2", c.otherWaits, true},
				} {
					holder, second := other(t, turn.path), contender(newActor(t, kazoo).contender(c.kazoo, turn.path))
					if turn.kazoo {
						holder, second = second, holder
					}
					mustLock(t, holder)
					held, err := second.lock(0)
					if mixed && turn.kazoo {
						if held || !errors.Is(err, lock.ErrMixed) {
							t.Errorf("%s: held %v, %v; want ErrMixed", turn.name, held, err)
						}
						mustUnlock(t, holder)
						continue
					}
					if err != nil || held == turn.waits {
						t.Errorf("%s: held %v, %v; want it to wait: %v", turn.name, held, err, turn.waits)
					}
					if held {
						mustUnlock(t, second)
					}
					mustUnlock(t, holder)
				}
			})
		}
	}
}

// A Semaphore's contenders are all children of its path. The two directories in which a
// SemaphoreMutex keeps its znodes make it full. It fails before, where the path has no data at
// all. No contender waits for it.
func TestKazooSemaphore(t *testing.T) {
	t.Parallel()
	for _, other := range []func(t testing.TB, path string) contender{
		func(t testing.TB, path string) contender { return semaphores.native(t, path) },
		func(t testing.TB, path string) contender { return semaphores.foreigner(t, curator, path) },
	} {
		path := pathOf(t)
		holder, python := other(t, path+"-1"), newActor(t, kazoo)
		mustLock(t, holder)
		if held, err := python.contender("semaphore", path+"-1").lock(0); held {
			t.Errorf("kazoo has a Semaphore where a SemaphoreMutex is held: %v", err)
		}
		mustUnlock(t, holder)

		holder, second := contender(python.contender("semaphore", path+"-2")), other(t, path+"-2")
		mustLock(t, holder)
		mustLock(t, second) // both hold it
		mustUnlock(t, second)
		mustUnlock(t, holder)
	}
}

// eachNamed runs a test for the kinds to which kazoo can give Curator's names: then all three libraries are in one
// queue. The path exists.
func eachNamed(t *testing.T, test func(t *testing.T, k, kazoos kind, path string)) {
	t.Helper()
	each(t, []kind{mutexes, writers}, func(t *testing.T, k kind, _ string) {
		test(t, k, renamed(k, map[string]string{"mutex": "lock-renamed", "write": "write-renamed"}[k.foreign]), lastingPathOf(t))
	})
}

func TestThreeLanguagesExclusion(t *testing.T) {
	t.Parallel()
	eachNamed(t, func(t *testing.T, k, kazoos kind, path string) {
		contend(t, path, 25,
			k.native(t, path), k.foreigner(t, curator, path), kazoos.foreigner(t, kazoo, path),
			k.native(t, path), k.foreigner(t, curator, path), kazoos.foreigner(t, kazoo, path))
	})
}

func TestThreeLanguagesOrder(t *testing.T) {
	t.Parallel()
	eachNamed(t, func(t *testing.T, k, kazoos kind, path string) {
		inOrder(t, path,
			kazoos.foreigner(t, kazoo, path), k.native(t, path), k.foreigner(t, curator, path),
			kazoos.foreigner(t, kazoo, path), k.foreigner(t, curator, path), k.native(t, path),
			kazoos.foreigner(t, kazoo, path))
	})
}

func TestKazooRefusal(t *testing.T) {
	t.Parallel()
	eachNamed(t, func(t *testing.T, k, kazoos kind, path string) {
		refusal(t, path, k.native(t, path), kazoos.foreigner(t, kazoo, path))
		refusal(t, path, kazoos.foreigner(t, kazoo, path), k.native(t, path))
	})
}

// kazoo looks for a lock's directory once per Lock object. If the directory was reaped, kazoo
// can't make another. docent's and Curator's directories are containers, which are reaped when
// they stay empty.
func TestKazooContainer(t *testing.T) {
	t.Parallel()
	path := pathOf(t)
	ours, theirs := mutexes.native(t, path), renamed(mutexes, "lock-renamed").foreigner(t, kazoo, path)
	mustLock(t, ours) // so that nothing is reaped yet
	granted := queueUp(t, ours.client, path, theirs)
	mustUnlock(t, ours)
	mustGet(t, granted[0], "kazoo's lock")
	mustUnlock(t, theirs)
	zktest.Eventually(t, generous, "the directory is reaped", exists(t, ours.client, path, false))
	if held, err := theirs.lock(noLimit); held || err == nil || !strings.Contains(err.Error(), "NoNodeError") {
		t.Errorf("kazoo's lock: %v, %v; want a NoNodeError", held, err)
	}
	mustLock(t, ours) // docent makes it again
	mustUnlock(t, ours)
}

// kazoo shows the data of docent's znodes as text, and docent lists kazoo's.
func TestKazooContenders(t *testing.T) {
	t.Parallel()
	path := pathOf(t)
	ours := mutexes.native(t, path, recipes.WithData([]byte("ours")))
	theirs := renamed(mutexes, "lock-renamed").foreigner(t, kazoo, path)
	mustLock(t, ours)
	granted := queueUp(t, ours.client, path, theirs)

	seen := newActor(t, kazoo).must(t, "contenders", theirs.kind, path)
	if len(seen) != 2 || !strings.Contains(decoded(t, seen[0]), ours.name) || decoded(t, seen[1]) != "" {
		t.Errorf("kazoo sees %q, want docent's metadata with owner %s, and no data", seen, ours.name)
	}
	participants := ours.participants(t)
	if len(participants) != 2 || participants[1].Session != theirs.session || participants[1].Metadata != nil {
		t.Errorf("docent sees %+v, want kazoo's contender second", participants)
	}
	mustUnlock(t, ours)
	mustGet(t, granted[0], "kazoo's lock")
}
