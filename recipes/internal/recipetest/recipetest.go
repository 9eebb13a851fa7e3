// Package recipetest has what the tests of several recipes need: paths of their own, calls that wait on
// other goroutines, and what a server has or was asked for.
package recipetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// Generous bounds what has to happen at some time, on a machine as slow as it may be.
const Generous = 30 * time.Second

// Path returns a path that is the test's own, even when the test runs again; so is its parent, which a test may create with
// an ACL.
func Path(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/test-%016x/%s", rand.Uint64(), strings.ReplaceAll(t.Name(), "/", "."))
}

// Patient returns a context that ends after Generous.
func Patient(t testing.TB) context.Context {
	t.Helper()
	return Within(t, Generous)
}

// Within returns a context that ends after d.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Client returns a connected client that is closed at the end of the test.
func Client(t testing.TB, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(connect, opts...))(t)
	t.Cleanup(func() {
		began := time.Now()
		err := c.Close()
		if errors.Is(err, framework.ErrUnknownOutcome) && (time.Since(began) >= time.Second || !answers(connect, opts)) {
			t.Logf("close: %v", err) // servers are busy, or the test has ended all of them
		} else if err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must.OK(t, c.AwaitConnected(t.Context()))
	return c
}

// ClientOf is [Client] for a server within the process.
func ClientOf(t testing.TB, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return Client(t, srv.Addr(), append(opts, framework.WithDialer(srv.Dial))...)
}

// answers reports whether a client of these options finds a server.
func answers(connect string, opts []framework.Option) bool {
	c, err := framework.NewClient(connect, opts...)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()                                        // it has done nothing
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) //nolint:forbidigo // the test's own has ended
	defer cancel()
	return c.AwaitConnected(ctx) == nil
}

// An Outcome is the result of a call that waits for a lease.
type Outcome struct {
	Lease *lease.Lease
	Err   error
	At    time.Time // of the return
}

// Later makes the call on another goroutine.
func Later(ctx context.Context, acquire func(context.Context) (*lease.Lease, error)) <-chan Outcome {
	done := make(chan Outcome, 1)
	go func() {
		l, err := acquire(ctx)
		done <- Outcome{l, err, time.Now()}
	}()
	return done
}

// Granted returns the lease of a call of [Later]. It fails the test if there is none.
func Granted(t testing.TB, done <-chan Outcome) *lease.Lease {
	t.Helper()
	got := must.Receive(t, done, "the lease")
	must.OK(t, got.Err)
	return got.Lease
}

// Children returns the names in the directory, as c sees them after a sync; none if there is no directory.
func Children(t testing.TB, c *framework.Client, dir string) []string {
	t.Helper()
	must.OK(t, c.Sync(t.Context(), dir))
	names, _, err := c.Children(t.Context(), dir)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		t.Fatal(err)
	}
	return names
}

// AwaitChildren waits until the directory has n children.
func AwaitChildren(t testing.TB, c *framework.Client, dir string, n int) {
	t.Helper()
	zktest.Eventually(t, Generous, fmt.Sprintf("%d children of %s", n, dir), func() bool { return len(Children(t, c, dir)) == n })
}

// Ops returns the kinds of the requests on the route that are about the path, or about what is below it,
// since the route's log was reset. Heartbeats are not.
func Ops(route *zkenv.Route, path string) []fault.Op {
	about := func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") }
	var all []fault.Op
	for _, rq := range route.Requests() {
		if about(rq.Path) || slices.ContainsFunc(rq.Parts, func(p fault.Part) bool { return about(p.Path) }) {
			all = append(all, rq.Op)
		}
	}
	return all
}

// MustHaveSent fails the test unless the requests on the route about the path are of these kinds, as Ops
// returns them. It resets the route's log.
func MustHaveSent(t testing.TB, what string, route *zkenv.Route, path string, want ...fault.Op) {
	t.Helper()
	if got := Ops(route, path); !slices.Equal(got, want) {
		t.Errorf("%s: requests %v, want %v", what, got, want)
	}
	route.ResetRequests()
}

// Permit sets which permissions every client has on the znode.
func Permit(t testing.TB, c *framework.Client, path string, perms acl.Permission) {
	t.Helper()
	must.Get(c.SetACL(t.Context(), path, []acl.Entry{{Perms: perms, Scheme: "world", ID: "anyone"}}, framework.AnyVersion))(t)
}
