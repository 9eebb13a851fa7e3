package leader_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// generous bounds what has to happen at some time, on a machine as slow as it may be.
const generous = 30 * time.Second

// sessionAtStake is the session timeout of clients that lose their session by its time.
const sessionAtStake = 4 * time.Second

// pathOf returns a path that is the test's own, also when it is run again.
func pathOf(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/leader/%s-%016x", strings.ReplaceAll(t.Name(), "/", "."), rand.Uint64())
}

func newElection(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *leader.Election {
	t.Helper()
	e, err := leader.New(c, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A candidate is an election as a lock.Locker: who leads has the lock.
type candidate struct{ *leader.Election }

func (c candidate) Lock(ctx context.Context) (*lock.Lease, error) { return c.Campaign(ctx) }

func (c candidate) TryLock(context.Context) (*lock.Lease, error) {
	panic("an election has no TryLock")
}

// mustLead campaigns or fails the test.
func mustLead(t testing.TB, e *leader.Election) *lease.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	term, err := e.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func mustResign(t testing.TB, term *lease.Lease) {
	t.Helper()
	if err := term.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A result is what a Campaign on another goroutine came to.
type result struct {
	term *lease.Lease
	err  error
	at   time.Time
}

// campaignLater calls Campaign on a goroutine of its own.
func campaignLater(ctx context.Context, e *leader.Election) <-chan result {
	done := make(chan result, 1)
	go func() {
		term, err := e.Campaign(ctx)
		done <- result{term, err, time.Now()}
	}()
	return done
}

// candidates returns the names in the election's directory, as c sees them after a sync.
func candidates(t testing.TB, c *framework.Client, path string) []string {
	t.Helper()
	if err := c.Sync(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	names, _, err := c.Children(t.Context(), path)
	if err != nil {
		return nil // there is no directory yet, or no more
	}
	return names
}

// awaitCandidates waits until the election's directory has n children.
func awaitCandidates(t testing.TB, c *framework.Client, path string, n int) {
	t.Helper()
	zktest.Eventually(t, generous, fmt.Sprintf("%d candidates", n), func() bool { return len(candidates(t, c, path)) == n })
}
