package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// TestALongWaitIsLogged: after two seconds a waiter logs which contender it waits for, and says if that
// is its own client's or its own process's. A waiter that is granted soon logs nothing.
func TestALongWaitIsLogged(t *testing.T) {
	t.Parallel()
	const path = "/locks/report"
	for name, tt := range map[string]struct {
		hold func(t *testing.T, own, other *framework.Client) // takes the lock
		want string
		text string // of the error of the wait
	}{
		"another process": {func(t *testing.T, _, other *framework.Client) {
			held := lease.Metadata{Version: lease.MetadataVersion, Host: "batch-3", PID: 811, Owner: "nightly"}.Encode()
			must.Get(other.Create(t.Context(), path+"/_c_1f3b2c4d-0000-4000-8000-000000000000-lock-", held,
				framework.Ephemeral(), framework.Sequential(), framework.WithParents()))(t)
		}, "still waiting for the lock", "process 811 on batch-3)"},
		"another owner of the client": {func(t *testing.T, own, _ *framework.Client) {
			must.Get(newMutex(t, own, path).Lock(lock.ContextWithOwner(t.Context(), lock.NewOwner("first"))))(t)
		}, "still waiting for the lock, which another owner of this client has or waits for", ", which is this one)"},
		"another session of the process": {func(t *testing.T, _, other *framework.Client) {
			mustLock(t, newMutex(t, other, path))
		}, "still waiting for the lock, which another session of this process has or waits for", ", which is this one)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.InfoLevel)
				srv := virtualServer(t)
				own, other := virtualClient(t, srv, framework.WithLogger(zap.New(core))), virtualClient(t, srv)
				tt.hold(t, own, other)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				began := time.Now()
				_, err := newMutex(t, own, path).Lock(ctx)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("error %v, want one that says %q", err, tt.text)
				}
				var after []time.Duration
				for _, e := range logs.FilterLoggerName("zk.lock").All() {
					after = append(after, e.Time.Sub(began).Round(time.Second))
					if e.Message != tt.want || e.Level != zapcore.InfoLevel {
						t.Errorf("%v: %s, want %s", e.Level, e.Message, tt.want)
					}
					if e.ContextMap()["zookeeper.lock.path"] != path || !strings.HasPrefix(e.ContextMap()["contender"].(string), path+"/_c_") {
						t.Errorf("fields %v", e.ContextMap())
					}
				}
				if want := []time.Duration{2 * time.Second, 6 * time.Second, 14 * time.Second, 30 * time.Second}; len(after) < 3 || len(after) > 4 || after[0] != want[0] || after[1] != want[1] || after[2] != want[2] {
					t.Errorf("lines after %v, want %v, the last one or not", after, want)
				}
			})
		})
	}
}
