package lock_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// TestMulti_deleted_after_an_unknown_outcome cuts the connection before the
// transaction of a release, of whose znodes an operator has deleted one.
func TestMulti_deleted_after_an_unknown_outcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c, operator := virtualClient(t, srv), virtualClient(t, srv)
		lease := mustLock(t, newMulti(t, newMutexes(t, c, "/unknown/a", "/unknown/b", "/unknown/c")...))
		must.OK(t, operator.Delete(t.Context(), lease.Members()[1].Node()))
		cut := srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/unknown/a/*", Action: fault.CutBefore})
		var lost *lock.LostError
		if err := lease.Release(t.Context()); !errors.As(err, &lost) || lost.Path != "/unknown/b" || !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("Release: %v, want that /unknown/b was lost by a deletion", err)
		}
		if cut.Hits() != 1 {
			t.Errorf("%d transactions cut, want 1", cut.Hits())
		}
	})
}
