package lock_test

import (
	"slices"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// A kind is one kind of lock. Tests of what all kinds promise run over kinds.
type kind struct {
	name string
	// lock returns the lock of this kind at path for c. All its znodes are below path.
	lock func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker
	// rival returns a lock that excludes the one that lock returns. Nil means lock itself.
	rival func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker

	create    fault.Op // the request that creates its znode, once the lock has been used
	queue     bool     // its contenders queue at path itself, and exclude each other
	fair      bool     // grants follow the order of the attempts
	reentrant bool
	callbacks bool // it takes a function for the queue position and for revocations
	noTry     bool
}

// kinds are all kinds of locks.
var kinds = []kind{
	{name: "mutex", lock: mutexAt, create: fault.Create, queue: true, fair: true, reentrant: true, callbacks: true},
	{name: "local", lock: localAt, create: fault.Create, fair: true, callbacks: true},
	{name: "read side", lock: readSideAt, rival: writeSideAt, create: fault.Create, reentrant: true, callbacks: true},
	{name: "write side", lock: writeSideAt, create: fault.Create, queue: true, fair: true, reentrant: true, callbacks: true},
	{name: "semaphore mutex", lock: semaphoreMutexAt, create: fault.Create, fair: true, callbacks: true},
	{name: "unfair mutex", lock: unfairMutexAt, create: fault.Multi},
	{name: "multi", lock: multiAt, create: fault.Multi, fair: true, reentrant: true, callbacks: true},
}

// Other recipes whose leases are as those of locks: see package recipetest.
var (
	permits   = kind{name: "permits", lock: ofSemaphore("", 2, 2).lock, fair: true}
	candidate = kind{name: "candidate", lock: ofElection(leader.Latch).lock, queue: true, fair: true, noTry: true}
)

// with returns the kinds and more.
func with(of []kind, more ...kind) []kind { return slices.Concat(of, more) }

// as returns the options as those of another recipe, which takes them, too.
func as[O any](opts []lock.Option) (same []O) {
	for _, o := range opts {
		same = append(same, o.(O))
	}
	return same
}

func mutexAt(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return newMutex(t, c, path, opts...)
}

func localAt(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return newLocal(t, newMutex(t, c, path, opts...), 3)
}

func readSideAt(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return newReadWrite(t, c, path, opts...).Read()
}

func writeSideAt(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return newReadWrite(t, c, path, opts...).Write()
}

func semaphoreMutexAt(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return newSemaphoreMutex(t, c, path, opts...)
}

func unfairMutexAt(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return newUnfairMutex(t, c, path+"/lock", opts...)
}

func multiAt(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	return newMulti(t, newMutex(t, c, path+"/a", opts...), newMutex(t, c, path+"/b", opts...), newMutex(t, c, path+"/c", opts...))
}

// exclusive reports whether a lock of the kind has one holder at a time.
func (k kind) exclusive() bool { return k.rival == nil }

// rivalOf returns a lock at path that excludes the kind's.
func (k kind) rivalOf(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
	t.Helper()
	if k.rival != nil {
		return k.rival(t, c, path, opts...)
	}
	return k.lock(t, c, path, opts...)
}

// kindsThat returns the kinds for which all conditions hold.
func kindsThat(conditions ...func(kind) bool) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
		return slices.ContainsFunc(conditions, func(holds func(kind) bool) bool { return !holds(k) })
	})
}

// inQueue reports whether contenders of the kind queue at the lock's path, and exclude each other.
func inQueue(k kind) bool { return k.queue }

// withParticipants reports whether contenders of the kind queue at the lock's path.
func withParticipants(k kind) bool { return k.queue || k.name == "read side" }

// eachKind runs test for each of the kinds, as parallel subtests by their names.
func eachKind(t *testing.T, of []kind, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range of {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// eachKindAndEnv runs test for each of the kinds in each environment, at a path that no other test uses.
func eachKindAndEnv(
	t *testing.T, of []kind, test func(t *testing.T, env *zkenv.Env, k kind, path string), opts ...zkenv.Option,
) {
	t.Helper()
	eachKind(t, of, func(t *testing.T, k kind) {
		zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) { test(t, env, k, anyPath("/"+t.Name())) }, opts...)
	})
}

// eachKindInVirtualTime runs test for each of the kinds, at a server of its own.
func eachKindInVirtualTime(
	t *testing.T, of []kind, test func(t *testing.T, k kind, srv *zkserver.Server), opts ...zkserver.Option,
) {
	t.Helper()
	for _, k := range of {
		virtualSubtest(t, k.name, func(t *testing.T, srv *zkserver.Server) { test(t, k, srv) }, opts...)
	}
}

// oneOfEach is for tests that run over all kinds, each in a virtual and in a real environment. TestContract
// has every kind in the other environments, too.
func oneOfEach() zkenv.Option {
	return zkenv.Only("a virtual and a real environment for each kind", zkenv.EmbeddedEnsemble, zkenv.Standalone)
}
