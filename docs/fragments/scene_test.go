// Package fragments_test runs the Go of the documentation's pages: a file for each page, which has
// the page's fragments line by line. TestTheGoOfPagesIsRun of docs compares them.
package fragments_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// A scene is what fragments find around them: an embedded server and one client.
type scene struct {
	server *zkserver.Server
	client *framework.Client
}

// inBubble runs fn in virtual time.
func inBubble(t *testing.T, fn func(t *testing.T, s scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t)
		fn(t, scene{server, connect(t, server)})
	})
}

// connect returns one more client of the server.
func connect(t *testing.T, server *zkserver.Server) *framework.Client {
	t.Helper()
	client := must.Get(framework.NewClient(server.Addr(), framework.WithDialer(server.Dial)))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// hold locks the path as another process would.
func (s scene) hold(t *testing.T, path string) *lock.Lease {
	t.Helper()
	mutex := must.Get(lock.NewMutex(connect(t, s.server), path))(t)
	return must.Get(mutex.Lock(t.Context()))(t)
}

// TestPages runs the fragments that need a client alone, and a job that is done so many times.
func TestPages(t *testing.T) {
	t.Parallel()
	for page, c := range map[string]struct {
		fragment func(ctx context.Context, client *framework.Client, j *job) error
		times    int
	}{
		"locks/multi": {func(ctx context.Context, c *framework.Client, j *job) error { return multi(ctx, c, j.publish) }, 1},
		"locks/mutex": {func(ctx context.Context, c *framework.Client, j *job) error { return mutex(ctx, c, j.work, j.publish) }, 2},
		"locks/read-write": {func(ctx context.Context, c *framework.Client, j *job) error {
			return readWrite(ctx, c, j.publish, j.publish)
		}, 2},
		"locks/semaphore-mutex": {func(ctx context.Context, c *framework.Client, j *job) error { return semaphoreMutex(ctx, c, j.work) }, 1},
		"recipes/node":          {func(ctx context.Context, c *framework.Client, _ *job) error { return keep(ctx, c) }, 0},
		"recipes/semaphore":     {func(ctx context.Context, c *framework.Client, _ *job) error { return acquire(ctx, c) }, 0},
		"recipes/leader": {func(ctx context.Context, c *framework.Client, j *job) error {
			return forAWhile(ctx, c, func(ctx context.Context, c *framework.Client) error { return elect(ctx, c, j.lead) })
		}, 1},
		"recipes/discovery": {func(ctx context.Context, c *framework.Client, _ *job) error { return forAWhile(ctx, c, register) }, 0},
		"recipes/group":     {func(ctx context.Context, c *framework.Client, _ *job) error { return forAWhile(ctx, c, join) }, 0},
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s scene) {
				var j job
				must.OK(t, c.fragment(t.Context(), s.client, &j))
				j.want(t, c.times)
			})
		})
	}
}

// forAWhile runs a fragment that goes on until its context ends.
func forAWhile(ctx context.Context, client *framework.Client, fragment func(context.Context, *framework.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := fragment(ctx, client)
	switch {
	case ctx.Err() == nil:
		return fmt.Errorf("the fragment ends before its context: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return err
}

// A job counts how often it is done.
type job struct{ times int }

func (j *job) work(ctx context.Context) error {
	j.times++
	return ctx.Err()
}

func (j *job) publish(ctx context.Context, _ *lock.Lease) error { return j.work(ctx) }

// lead is done once in a term.
func (j *job) lead(ctx context.Context, _ *lock.Lease) error {
	j.times++
	<-ctx.Done()
	return nil
}

// want checks how often the job was done.
func (j *job) want(t *testing.T, times int) {
	t.Helper()
	if j.times != times {
		t.Errorf("the work was done %d times, want %d", j.times, times)
	}
}
