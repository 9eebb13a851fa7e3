package barrier_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// generous bounds what has to happen at some time, on a machine as slow as it may be.
const generous = 30 * time.Second

// pathOf returns a path that is the test's own, also when it is run again.
func pathOf(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/barrier/%s-%016x", strings.ReplaceAll(t.Name(), "/", "."), rand.Uint64())
}

func newDouble(t testing.TB, c *framework.Client, path string, members int) *barrier.Double {
	t.Helper()
	d, err := barrier.NewDouble(c, path, members)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A result is that of an Enter on another goroutine.
type result struct {
	lease *lease.Lease
	err   error
}

// enterLater calls Enter on a goroutine of its own.
func enterLater(ctx context.Context, d *barrier.Double) <-chan result {
	done := make(chan result, 1)
	go func() {
		l, err := d.Enter(ctx)
		done <- result{l, err}
	}()
	return done
}

// entered waits for the lease of enterLater.
func entered(t testing.TB, done <-chan result) *lease.Lease {
	t.Helper()
	got := must.Receive(t, done, "the entry")
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.lease
}

// leaveLater calls Leave on a goroutine of its own.
func leaveLater(ctx context.Context, d *barrier.Double, l *lease.Lease) <-chan error {
	done := make(chan error, 1)
	go func() { done <- d.Leave(ctx, l) }()
	return done
}

// left waits for the end of leaveLater.
func left(t testing.TB, done <-chan error) {
	t.Helper()
	if err := must.Receive(t, done, "the end of Leave"); err != nil {
		t.Fatal(err)
	}
}

// awaitChildren waits until the barrier's directory has n children.
func awaitChildren(t testing.TB, c *framework.Client, path string, n int) {
	t.Helper()
	zktest.Eventually(t, generous, fmt.Sprintf("%d children", n), func() bool {
		if err := c.Sync(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		names, _, err := c.Children(t.Context(), path)
		return err == nil && len(names) == n || err != nil && n == 0
	})
}

// ops returns the kinds of the requests on the route that are about the path, or what is below it,
// since the log was reset.
func ops(route *zkenv.Route, path string) []fault.Op {
	var all []fault.Op
	for _, rq := range route.Requests() {
		about := rq.Path
		if len(rq.Parts) > 0 {
			about = rq.Parts[0].Path
		}
		if about == path || strings.HasPrefix(about, path+"/") {
			all = append(all, rq.Op)
		}
	}
	return all
}
