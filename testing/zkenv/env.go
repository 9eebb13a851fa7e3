package zkenv

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
)

// SessionTimeout is what clients ask for unless their options say otherwise: long
// enough to outlast a busy machine's pauses.
const SessionTimeout = 10 * time.Second

// Latency is the time of a round trip on a [Route] in virtual time, unless the test sets another.
// Without any, the protocol's next step would happen at the same instant. A client would abandon a
// session at the very nanosecond at which the server ends it, in either order.
const Latency = 200 * time.Microsecond

// A Env is the ZooKeeper that one run of a test has, and the ways to it. [ForEach] makes
// one.
type Env struct {
	kind Kind   // immutable
	host host   // immutable
	cfg  config // immutable
}

// settleTime is long enough for a few round trips, and short compared with all timeouts.
const settleTime = 50 * time.Millisecond

// A host is what serves an environment. Members are numbered from 0, followers first.
type host interface {
	// connect returns the connect string of all members.
	connect() string
	// member returns the connect string of one.
	member(i int) string
	// options returns what clients need to get there.
	options() []framework.Option
	// proxy puts a proxy in front of a member.
	proxy(t testing.TB, i int) (*zkproxy.Proxy, []framework.Option)
	// expire ends a session at a member while its client can't reconnect.
	expire(ctx context.Context, i int, s zkproxy.Session) error
	// ephemerals returns the paths of a session's ephemeral nodes.
	ephemerals(ctx context.Context, session int64) ([]string, error)

	freeze(i int) error
	thaw(i int) error
	isolate(i int) error
	heal(i int)
	restart(ctx context.Context, i int) error
}

// Kind returns which environment it is.
func (w *Env) Kind() Kind { return w.kind }

// Client returns a client that is connected to any of the members, and is closed when the
// test has ended. opts come after the environment's own.
func (w *Env) Client(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	return w.connect(t, w.host.connect(), append(w.host.options(), opts...))
}

// Members returns the servers of the environment. Those that follow a leader come first; a
// leader that serves clients is the last. A standalone server is the only one.
func (w *Env) Members() []*Member {
	members := make([]*Member, w.kind.Members())
	for i := range members {
		members[i] = &Member{w, i}
	}
	return members
}

// Route returns a new way to the first member, that can be harmed.
func (w *Env) Route(t testing.TB) *Route {
	t.Helper()
	return w.Members()[0].Route(t)
}

// Quiesce lets a moment pass, in which requests under way are answered and every goroutine runs
// until it waits. In virtual time that is certain. In real time it needs a machine that is not
// overloaded, so a test must not depend on it to pass.
func (w *Env) Quiesce() {
	<-time.After(settleTime)
	if w.kind.Virtual() {
		synctest.Wait()
	}
}

// Ephemerals returns the paths of the ephemeral nodes that a session has, as the servers
// tell, one of which may be behind. It fails the test if they can't be asked.
func (w *Env) Ephemerals(t testing.TB, session int64) []string {
	t.Helper()
	paths, err := w.host.ephemerals(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func (w *Env) connect(t testing.TB, addr string, opts []framework.Option) *framework.Client {
	t.Helper()
	opts = append([]framework.Option{framework.WithSessionTimeout(SessionTimeout)}, opts...)
	c, err := framework.NewClient(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		began := time.Now()
		err := c.Close()
		if errors.Is(err, framework.ErrUnknownOutcome) && time.Since(began) >= time.Second && !w.kind.Virtual() {
			t.Logf("close: %v", err) // a busy machine's server has not replied within the time that Close gives it
		} else if err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := c.AwaitConnected(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}
