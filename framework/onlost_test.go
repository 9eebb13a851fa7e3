package framework_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// Who asked to be told of a loss has been told when the ensemble hears of the
// session's end: loss before succession.
func TestALossIsPassedOnBeforeCloseTellsTheEnsemble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told, early, ended atomic.Bool
		srv, err := zkserver.Start(zkserver.WithObserver(func(x zkserver.Transaction) {
			if x.Ended != 0 {
				ended.Store(true)
				early.Store(!told.Load())
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		c := newClient(t, srv.ConnectString(), framework.WithDialer(srv.Dial))
		h, released := mustHold(t, c), mustHold(t, c)
		h.OnLost(func(cause error) {
			if !errors.Is(cause, framework.ErrClosed) || !errors.Is(h.Err(), framework.ErrClosed) {
				t.Errorf("told of %v, and Err is %v; want ErrClosed", cause, h.Err())
			}
			told.Store(true)
		})
		released.OnLost(func(error) { t.Error("a hold that was released is told of a loss") })
		released.Release()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !ended.Load() || early.Load() {
			t.Errorf("the session has ended at the server: %v, before the hold's owner was told: %v", ended.Load(), early.Load())
		}
		h.OnLost(func(error) { t.Error("a hold that is lost already is told of it") })
	})
}
