package interop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// sessionTimeout is long enough for a machine that is busy.
const sessionTimeout = 10 * time.Second

// shortSession is that of actors whose session is waited for to end.
const shortSession = 5 * time.Second

// A contender is one owner at one lock, of any library. It is used by one goroutine at a time.
type contender interface {
	// lock waits for the lock, at the most for the limit, and reports whether it
	// has it. A negative limit is none, and 0 is one attempt.
	lock(limit time.Duration) (held bool, err error)
	unlock() error
	withdraw() error  // ends a lock that waits on another goroutine, and the contender with it
	entry() entry     // of the present hold
	sessionID() int64 // of the session that its znodes belong to
}

// noLimit waits as long as the test does.
const noLimit = -time.Millisecond

// An actor is a session of a driver.
type actor struct {
	*driver
	library string
	name    string
	session int64
}

// newActor connects a new actor of the library's shared driver to the shared server.
func newActor(t testing.TB, l *library) *actor {
	t.Helper()
	return newActorOf(t, l, l.shared(t), sessionTimeout)
}

// newActorOf is newActor for another driver and session timeout.
func newActorOf(t testing.TB, l *library, d *driver, timeout time.Duration) *actor {
	t.Helper()
	a := &actor{driver: d, library: l.name, name: fmt.Sprint("actor-", serial.Add(1))}
	results := a.must(t, "connect", zktest.Shared(t).Addr(), strconv.FormatInt(timeout.Milliseconds(), 10))
	session := must.Get(strconv.ParseInt(results[0], 10, 64))(t)
	a.session = session
	t.Cleanup(func() { a.do("close") })
	return a
}

// do gives the actor a command.
func (a *actor) do(words ...string) *call { return a.driver.call(a.name, words...) }

// must gives the actor a command that has to succeed, and returns the results.
func (a *actor) must(t testing.TB, words ...string) []string {
	t.Helper()
	results, ok := must.Get2(a.do(words...).wait())(t)
	if !ok {
		t.Fatalf("%s of %s: refused", words, a.library)
	}
	return results
}

// A foreigner is a contender in a driver.
type foreigner struct {
	*actor
	kind, path string
	shared     bool
	fences     string // the path whose lock's fence counts; path, or one of a multi lock's
	fence      int64
}

func (a *actor) contender(kind, path string) *foreigner {
	return &foreigner{actor: a, kind: kind, path: path, fences: path}
}

func (f *foreigner) lock(limit time.Duration) (bool, error) {
	return f.locked(f.lockLater(limit))
}

// lockLater has the actor lock, and does not wait for it.
func (f *foreigner) lockLater(limit time.Duration) *call {
	return f.do("lock", f.kind, f.path, strconv.FormatInt(limit.Milliseconds(), 10))
}

// locked waits for what came of lockLater.
func (f *foreigner) locked(c *call) (bool, error) {
	results, ok, err := c.wait()
	if err != nil || !ok {
		return false, err
	}
	// A multi lock answers the fences of its members in the order of their paths.
	i := max(0, slices.Index(strings.Split(f.path, ","), f.fences))
	f.fence, err = strconv.ParseInt(results[i], 10, 64)
	return true, err
}

func (f *foreigner) withdraw() error {
	_, _, err := f.do("interrupt").wait()
	return err
}

func (f *foreigner) sessionID() int64 { return f.session }

func (f *foreigner) unlock() error {
	_, _, err := f.do("unlock", f.kind, f.path).wait()
	return err
}

func (f *foreigner) entry() entry {
	who := fmt.Sprintf("%s's %s (process %d)", f.library, f.name, f.cmd.Process.Pid)
	return entry{who: who, library: f.library, fence: f.fence, shared: f.shared}
}

// A native is a contender of docent's own.
type native struct {
	ctx    context.Context // the test's, with an owner
	cancel context.CancelFunc
	client *framework.Client
	locker lock.Locker
	name   string
	shared bool
	fences string // the path of the member whose fence counts, of a multi lock
	lease  *lock.Lease
}

func newNative(t testing.TB, l lock.Locker) *native {
	t.Helper()
	name := fmt.Sprint("owner-", serial.Add(1))
	ctx, cancel := context.WithCancel(lock.ContextWithOwner(t.Context(), lock.NewOwner(name)))
	t.Cleanup(cancel)
	return &native{ctx: ctx, cancel: cancel, locker: l, name: name}
}

func (n *native) lock(limit time.Duration) (bool, error) {
	var err error
	switch {
	case limit == 0:
		n.lease, err = n.locker.TryLock(n.ctx)
	default:
		within := limit
		if limit < 0 {
			within = generous
		}
		ctx, cancel := context.WithTimeout(n.ctx, within)
		defer cancel()
		n.lease, err = n.locker.Lock(ctx)
	}
	if errors.Is(err, lock.ErrHeld) || limit > 0 && errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

func (n *native) withdraw() error {
	n.cancel()
	return nil
}

func (n *native) sessionID() int64 { return n.client.Session().ID }

func (n *native) unlock() error { return n.lease.Release(n.ctx) }

// participants returns the contenders as this one's lock sees them.
func (n *native) participants(t testing.TB) []lock.Participant {
	t.Helper()
	type lister interface {
		Participants(ctx context.Context) ([]lock.Participant, error)
	}
	l, ok := n.locker.(lister)
	if !ok {
		t.Fatalf("a %T lists no participants", n.locker)
	}
	participants := must.Get(l.Participants(t.Context()))(t)
	return participants
}

func (n *native) entry() entry {
	lease := n.lease
	for _, member := range lease.Members() {
		if member.Path() == n.fences {
			lease = member
		}
	}
	fence := lease.Fence()
	return entry{who: "docent's " + n.name, library: docent, fence: fence, shared: n.shared}
}

const docent = "docent"

// newClient returns a connected client that is closed at the end of the test. It
// is traced, so that znodes hold all the metadata there is.
func newClient(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append([]framework.Option{
		framework.WithSessionTimeout(sessionTimeout), framework.WithTracerProvider(sdktrace.NewTracerProvider()),
	}, opts...)
	c := must.Get(framework.NewClient(zktest.Shared(t).Addr(), opts...))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must.OK(t, c.AwaitConnected(t.Context()))
	return c
}

// mustLock has c lock, or fails the test.
func mustLock(t testing.TB, c contender) {
	t.Helper()
	held, err := c.lock(noLimit)
	if err != nil || !held {
		t.Fatalf("lock: %v, %v; want it held", held, err)
	}
}

func mustUnlock(t testing.TB, c contender) {
	t.Helper()
	must.OK(t, c.unlock())
}

// mustBeRefused has c try, at most for the limit, a lock that another contender holds.
func mustBeRefused(t testing.TB, c contender, limit time.Duration) {
	t.Helper()
	held, err := c.lock(limit)
	if err != nil || held {
		t.Errorf("a lock that is held was granted within %v: %v, %v; want it refused", limit, held, err)
	}
}
