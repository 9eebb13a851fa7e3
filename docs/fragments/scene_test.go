// Package fragments_test runs the Go of the documentation's pages: a file for each page, which has
// the page's fragments line by line. TestTheGoOfPagesIsRun of docs compares them.
package fragments_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
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
	client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// hold locks the path as another process would.
func (s scene) hold(t *testing.T, path string) *lock.Lease {
	t.Helper()
	mutex, err := lock.NewMutex(connect(t, s.server), path)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := mutex.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// succeed runs a fragment that must not fail.
func succeed(t *testing.T, fragment func() error) {
	t.Helper()
	if err := fragment(); err != nil {
		t.Fatal(err)
	}
}

// A job counts how often it is done.
type job struct{ times int }

func (j *job) work(ctx context.Context) error {
	j.times++
	return ctx.Err()
}

func (j *job) publish(ctx context.Context, _ *lock.Lease) error { return j.work(ctx) }

// want checks how often the job was done.
func (j *job) want(t *testing.T, times int) {
	t.Helper()
	if j.times != times {
		t.Errorf("the work was done %d times, want %d", j.times, times)
	}
}
