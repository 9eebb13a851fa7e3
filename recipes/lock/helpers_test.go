package lock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// Names of the package that variables called lease hide.
var errSuspended, errNoGuard = lease.ErrSuspended, lease.ErrNoGuard

type metadata = lease.Metadata

// generous bounds what has to happen at some time, on a machine as slow as it may be.
const generous = recipetest.Generous

// newClient returns a connected client that is closed at the end of the test.
func newClient(t testing.TB, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	return recipetest.Client(t, connect, append([]framework.Option{framework.WithSessionTimeout(10 * time.Second)}, opts...)...)
}

func newMutex(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.Mutex {
	t.Helper()
	return must.Get(lock.NewMutex(c, path, opts...))(t)
}

// onRoute returns a client that has a route of its own to a server of the environment.
func onRoute(t testing.TB, env *zkenv.Env, opts ...framework.Option) (*framework.Client, *zkenv.Route) {
	t.Helper()
	route := env.Route(t)
	return route.Client(t, opts...), route
}

// mustLock locks or fails the test.
func mustLock(t testing.TB, l lock.Locker) *lock.Lease {
	t.Helper()
	return mustLockAs(t.Context(), t, l)
}

func mustRelease(t testing.TB, l *lock.Lease) {
	t.Helper()
	must.OK(t, l.Release(t.Context()))
}

// contenders and awaitContenders list a lock's directory.
var contenders, awaitContenders = recipetest.Children, recipetest.AwaitChildren

// A result is what a Lock on another goroutine came to.
type result = recipetest.Outcome

// lockLater calls Lock on a goroutine of its own.
func lockLater(ctx context.Context, l lock.Locker) <-chan result {
	return recipetest.Later(ctx, l.Lock)
}

func newLocal(t testing.TB, m *lock.Mutex, max int) *lock.Local {
	t.Helper()
	return must.Get(lock.NewLocal(m, max))(t)
}

// firstOf returns the lease itself, or that of a Multi's first member.
func firstOf(l *lock.Lease) *lock.Lease {
	if members := l.Members(); members != nil {
		return members[0]
	}
	return l
}

// inVirtualTime runs the test in parallel and in virtual time, at a server of its own.
func inVirtualTime(t *testing.T, test func(t *testing.T, srv *zkserver.Server), opts ...zkserver.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, virtualServer(t, opts...)) })
}

// virtualSubtest is inVirtualTime for a subtest.
func virtualSubtest(t *testing.T, name string, test func(t *testing.T, srv *zkserver.Server), opts ...zkserver.Option) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inVirtualTime(t, test, opts...) })
}

// inEachEnv runs the test in parallel and in each environment, and envSubtest a subtest.
var inEachEnv, envSubtest = recipetest.InEachEnv, recipetest.Subtest

// behindPipe returns a proxy in virtual time. Its Dial reaches the server.
func behindPipe(t testing.TB, srv *zkserver.Server) *zkproxy.Proxy {
	t.Helper()
	return zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
}

// atFrontend returns a client of one of the server's frontends.
func atFrontend(t testing.TB, srv *zkserver.Server, i int) *framework.Client {
	t.Helper()
	return newClient(t, srv.Frontend(i).Addr(), framework.WithDialer(srv.Dial))
}

// virtualServer starts a server that is closed at the end of the test.
func virtualServer(t testing.TB, opts ...zkserver.Option) *zkserver.Server {
	t.Helper()
	return zkserver.Run(t, append(zkenv.DrawVersion(t), opts...)...)
}

// virtualClient returns a connected client of srv.
func virtualClient(t testing.TB, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return newClient(t, srv.Addr(), append([]framework.Option{framework.WithDialer(srv.Dial)}, opts...)...)
}

// serverInProcess returns the connect string of a server of the test's own, and
// what gets a client there. It is of the default version, because benchmarks are compared.
func serverInProcess(t testing.TB) (string, framework.Option) {
	t.Helper()
	server := zkserver.Run(t)
	return server.Addr(), framework.WithDialer(server.Dial)
}

func newUnfairMutex(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.UnfairMutex {
	t.Helper()
	return must.Get(lock.NewUnfairMutex(c, path, opts...))(t)
}

func newSemaphoreMutex(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.SemaphoreMutex {
	t.Helper()
	return must.Get(lock.NewSemaphoreMutex(c, path, opts...))(t)
}

func newReadWrite(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.RWMutex {
	t.Helper()
	return must.Get(lock.NewRWMutex(c, path, opts...))(t)
}

func newMulti(t testing.TB, locks ...lock.Locker) *lock.Multi {
	t.Helper()
	return must.Get(lock.NewMulti(locks...))(t)
}

// newMutexes returns a mutex for each path.
func newMutexes(t testing.TB, c *framework.Client, paths ...string) []lock.Locker {
	t.Helper()
	mutexes := make([]lock.Locker, len(paths))
	for i, path := range paths {
		mutexes[i] = newMutex(t, c, path)
	}
	return mutexes
}

// anyPath returns a path below dir that no other test uses, nor another run of the same one.
func anyPath(dir string) string { return zkpath.Join(dir, strings.ToLower(rand.Text())) }

// numbered returns n paths below dir, in their order.
func numbered(dir string, n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s/%02d", dir, i)
	}
	return paths
}

// asOwner returns a context whose calls are made by a new owner.
func asOwner(t testing.TB, name string) context.Context {
	t.Helper()
	return lock.ContextWithOwner(t.Context(), lock.NewOwner(name))
}

// dead returns a context that has ended.
func dead(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// tryLock is TryLock with Lock's name, to test both by one body.
type tryLock struct{ lock.Locker }

func (l tryLock) Lock(ctx context.Context) (*lock.Lease, error) { return l.TryLock(ctx) }

// mustLockAs locks as the owner of ctx, or fails the test.
func mustLockAs(ctx context.Context, t testing.TB, l lock.Locker) *lock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, generous)
	defer cancel()
	return must.Get(l.Lock(ctx))(t)
}

// mustTry locks without waiting or fails the test.
func mustTry(t testing.TB, l lock.Locker) *lock.Lease {
	t.Helper()
	return must.Get(l.TryLock(t.Context()))(t)
}

// mustRefuse fails the test unless TryLock says ErrHeld.
func mustRefuse(t testing.TB, l lock.Locker) {
	t.Helper()
	mustBeHeld(t.Context(), t, l)
}

// mustBeHeld fails the test unless a try to lock is refused since others are there.
func mustBeHeld(ctx context.Context, t testing.TB, l lock.Locker) {
	t.Helper()
	wantErr(t, "TryLock", errOf(l.TryLock(ctx)), lock.ErrHeld)
}

// wantErr reports an error that does not match each of the targets.
var wantErr = recipetest.Fails

// errOf returns the error of a call that is to return no lease. A lease is an error, too.
func errOf(l *lock.Lease, err error) error {
	if l != nil {
		return fmt.Errorf("no error, but the lease of %s", l.Path())
	}
	return err
}

// failed waits for a Lock on another goroutine, and returns what errOf makes of it.
func failed(t testing.TB, done <-chan result, what string) error {
	t.Helper()
	got := must.Receive(t, done, what)
	return errOf(got.Lease, got.Err)
}

// mustHold fails the test unless the lease is held, and its znodes exist.
func mustHold(t testing.TB, c *framework.Client, lease *lock.Lease) {
	t.Helper()
	if err := lease.Err(); err != nil {
		t.Fatalf("lease: %v, want nil", err)
	}
	leases := lease.Members()
	if leases == nil {
		leases = []*lock.Lease{lease}
	}
	for _, l := range leases {
		mustSync(t, c, l.Node())
		st, ok, err := c.Exists(t.Context(), l.Node())
		if fence := l.Fence(); err != nil || !ok || st.Czxid != fence {
			t.Fatalf("the lease's znode: %v, %v, czxid %d; want it to exist with czxid %d", ok, err, st.Czxid, fence)
		}
	}
}

// mustWait fails the test if one of the Locks returns within a short time.
func mustWait(t testing.TB, what string, waiting ...<-chan result) {
	t.Helper()
	zktest.Never(t, 200*time.Millisecond, what+" is not granted", func() bool {
		mustWaitStill(t, what, waiting...)
		return false
	})
}

// mustWaitStill fails the test if one of the Locks has returned.
func mustWaitStill(t testing.TB, what string, waiting ...<-chan result) {
	t.Helper()
	for _, done := range waiting {
		select {
		case got := <-done:
			t.Fatalf("%s: Lock returned %v, %v; want it to wait", what, got.Lease, got.Err)
		default:
		}
	}
}

// mustReleaseEach releases what comes of each, in whatever order that is.
func mustReleaseEach(t *testing.T, pending ...<-chan result) {
	t.Helper()
	var wg sync.WaitGroup
	for _, waiting := range pending {
		wg.Go(func() {
			got := <-waiting // the bubble tells if there is none
			if got.Err != nil {
				t.Error(got.Err)
				return
			}
			wantErr(t, "release", got.Lease.Release(t.Context()), nil)
		})
	}
	wg.Wait()
}

// queueUp calls Lock on a goroutine of its own and returns once its znode is the n-th in the
// queue.
func queueUp(ctx context.Context, t testing.TB, l lock.Locker, observer *framework.Client, path string, n int) <-chan result {
	t.Helper()
	done := lockLater(ctx, l)
	awaitContenders(t, observer, path, n)
	return done
}

// granted waits for the lease that a Lock on another goroutine gets.
func granted(t testing.TB, done <-chan result, what string) *lock.Lease {
	t.Helper()
	got := must.Receive(t, done, what)
	if got.Err != nil {
		t.Fatalf("%s: %v", what, got.Err)
	}
	return got.Lease
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// await lets virtual time pass.
func await(d time.Duration) { <-time.After(d) }

// mustLeaveNothing fails the test if there are znodes below the path a minute later.
func mustLeaveNothing(t testing.TB, srv *zkserver.Server, path string) {
	t.Helper()
	await(time.Minute)
	if left := znodesBelow(srv, path); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// znodesBelow returns the znodes below path, as the server has them.
func znodesBelow(srv *zkserver.Server, path string) []string {
	var found []string
	for _, p := range srv.Paths() {
		if strings.HasPrefix(p, path+"/") {
			found = append(found, p)
		}
	}
	return found
}

// createDirs creates directories that no server removes, where they are missing.
func createDirs(t testing.TB, c *framework.Client, paths ...string) {
	t.Helper()
	for _, path := range paths {
		_, err := c.Create(t.Context(), path, nil, framework.WithParents())
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			t.Fatal(err)
		}
	}
}

// mustSync has c's server catch up with the leader.
func mustSync(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	must.OK(t, c.Sync(t.Context(), path))
}

// ephemerals returns the lock's znodes that belong to a session: holders, waiters and orphans.
func ephemerals(t testing.TB, c *framework.Client, path string) []string {
	t.Helper()
	mustSync(t, c, path)
	tree, err := c.GetTree(t.Context(), path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		t.Fatal(err)
	}
	var found []string
	for path, read := range tree {
		if read.Stat.EphemeralOwner > 0 {
			found = append(found, path)
		}
	}
	return found
}

// awaitEphemerals waits until n of the lock's znodes belong to sessions.
func awaitEphemerals(t testing.TB, c *framework.Client, path string, n int) {
	t.Helper()
	zktest.Eventually(t, generous, "the number of znodes that belong to sessions", func() bool {
		return len(ephemerals(t, c, path)) == n
	})
}

// count returns how many requests of some kinds the client sent about the path.
func count(route *zkenv.Route, path string, ops ...fault.Op) int {
	return len(slices.DeleteFunc(recipetest.Ops(route, path), func(op fault.Op) bool { return !slices.Contains(ops, op) }))
}

// digits returns the number in the name of a contender's znode.
func digits(node string) string { return node[strings.LastIndex(node, "_")+1:] }

// createNode creates a znode as another process would, and returns its path.
func createNode(t testing.TB, c *framework.Client, path string, opts ...framework.CreateOption) string {
	t.Helper()
	return must.Get(c.Create(t.Context(), path, nil, append(opts, framework.Ephemeral(), framework.WithParents())...))(t)
}

func deleteNode(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	must.OK(t, c.Delete(t.Context(), path))
}

// keepDirectories gives each of the locks' directories a child that the locks ignore. So the
// server does not remove it while requests are counted.
func keepDirectories(t testing.TB, c *framework.Client, paths []string) {
	t.Helper()
	for _, path := range paths {
		must.Get(c.Create(t.Context(), path+"/kept", nil, framework.WithParents(), framework.Idempotent()))(t)
	}
}

// awaitEach waits until the lock's directories have so many children, in the
// order of the paths.
func awaitEach(t testing.TB, c *framework.Client, paths []string, n ...int) {
	t.Helper()
	for i, path := range paths {
		awaitContenders(t, c, path, n[min(i, len(n)-1)])
	}
}

// A foreign is a Locker from elsewhere, whose Lock fails.
type foreign struct {
	lock.Locker
	path string
	err  error
}

func (f *foreign) Path() string { return f.path }

func (f *foreign) Lock(context.Context) (*lock.Lease, error) { return nil, f.err }

// nameless is a Locker without a method that tells its path.
type nameless struct{ locker lock.Locker }

func (n nameless) Lock(ctx context.Context) (*lock.Lease, error)    { return n.locker.Lock(ctx) }
func (n nameless) TryLock(ctx context.Context) (*lock.Lease, error) { return n.locker.TryLock(ctx) }

func mustDo(t testing.TB, ctx context.Context, l lock.Locker) { //nolint:revive // t comes first in tests
	t.Helper()
	must.OK(t, lock.Do(ctx, l, func(context.Context, *lock.Lease) error { return nil }))
}
