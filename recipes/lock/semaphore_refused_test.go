package lock_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// TestSemaphoreMutexReportsARefusedDeletion keeps the holder from deleting its znode in the
// queue, behind which every other contender would wait.
func TestSemaphoreMutexReportsARefusedDeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/semaphore-refused"
		srv := virtualServer(t)
		core, logs := observer.New(zap.ErrorLevel)
		operator, c := virtualClient(t, srv), virtualClient(t, srv, framework.WithLogger(zap.New(core)))
		createDirs(t, operator, path+"/leases")
		noDelete := framework.WithACL(framework.ACL{Perms: framework.PermAll &^ framework.PermDelete, Scheme: "world", ID: "anyone"})
		must.Get(operator.Create(t.Context(), path+"/locks", nil, noDelete))(t)
		m := newSemaphoreMutex(t, c, path)
		if err := mustLock(t, m).Release(t.Context()); !errors.Is(err, framework.ErrNoAuth) {
			t.Errorf("Release: %v, want ErrNoAuth", err)
		}
		zktest.Eventually(t, generous, "an error in the log", func() bool { return logs.Len() > 0 })
		must.Get(operator.SetACL(t.Context(), path+"/locks", framework.OpenACL(), framework.AnyVersion))(t)
		zktest.Eventually(t, generous, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
		if n := logs.Len(); n != 1 {
			t.Errorf("%d lines in the log, want one: %v", n, logs.All())
		}
		mustRelease(t, mustLock(t, newSemaphoreMutex(t, operator, path)))
	})
}
