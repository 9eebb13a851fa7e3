package interop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

// A kind of lock, by the names that it has here and elsewhere.
type kind struct {
	name    string
	foreign string // in the driver
	shared  bool
	make    maker
}

// A maker makes locks of a kind.
type maker = func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker

// by returns the maker that calls a constructor.
func by[L lock.Locker](construct func(*framework.Client, string, ...lock.Option) (L, error)) maker {
	return func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
		t.Helper()
		return must.Get(construct(c, path, opts...))(t)
	}
}

func readWrite(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.RWMutex {
	t.Helper()
	return must.Get(lock.NewRWMutex(c, path, opts...))(t)
}

func readSide(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return readWrite(t, c, path, opts...).Read()
}

func writeSide(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return readWrite(t, c, path, opts...).Write()
}

// multi returns a lock of two mutexes, whose paths stand in path with a comma, as
// the driver has it.
func multi(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	var members []lock.Locker
	for member := range strings.SplitSeq(path, ",") {
		members = append(members, mutexes.make(t, c, member, opts...))
	}
	return must.Get(lock.NewMulti(members...))(t)
}

// Curator's twins of docent's kinds.
var (
	mutexes    = kind{name: "Mutex", foreign: "mutex", make: by(lock.NewMutex)}
	semaphores = kind{name: "SemaphoreMutex", foreign: "semaphore", make: by(lock.NewSemaphoreMutex)}
	writers    = kind{name: "Write", foreign: "write", make: writeSide}
	readers    = kind{name: "Read", foreign: "read", make: readSide, shared: true}
	multis     = kind{name: "Multi", foreign: "multi", make: multi}

	// exclusives are those that one holder at a time has.
	exclusives = []kind{mutexes, semaphores, writers}
	// queued are those whose contenders stand in the lock's own directory.
	queued = []kind{mutexes, writers, readers}
	// inTurn are the kinds with one holder at a time, elections among them.
	inTurn = append(slices.Clone(exclusives), latches, selectors)
)

// each runs a test for each kind, with a path of its own.
func each(t *testing.T, kinds []kind, test func(t *testing.T, k kind, path string)) {
	t.Helper()
	for _, k := range kinds {
		sub(t, k.name, func(t *testing.T, path string) { test(t, k, path) })
	}
}

// sub runs a part of a test beside its other parts, with a path of its own.
func sub(t *testing.T, name string, test func(t *testing.T, path string)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		test(t, pathOf(t))
	})
}

// native returns a contender of docent's of the kind, with a new client.
func (k kind) native(t testing.TB, path string, opts ...lock.Option) *native {
	t.Helper()
	return k.nativeOf(t, newClient(t), path, opts...)
}

func (k kind) nativeOf(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *native {
	t.Helper()
	n := newNative(t, k.make(t, c, path, opts...))
	n.client, n.shared, n.fences = c, k.shared, path
	return n
}

// foreigner returns a contender of the library's of the kind, with a new actor.
func (k kind) foreigner(t testing.TB, l *library, path string) *foreigner {
	t.Helper()
	f := newActor(t, l).contender(k.foreign, path)
	f.shared = k.shared
	return f
}
