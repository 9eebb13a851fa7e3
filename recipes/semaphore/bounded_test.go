package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestDoWithPermits has an outage begin while fn works under permits.
func TestDoWithPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
		c := recipetest.Client(t, srv.Addr(), framework.WithDialer(srv.Dial))
		began := time.Now()
		err := lock.Do(t.Context(), recipetest.Permits{Semaphore: newSemaphore(t, c, "/permits", 2), N: 2}, func(context.Context, *lock.Lease) error {
			srv.Refuse()
			srv.Cut()
			return nil
		})
		if took := time.Since(began); err != nil || took > time.Second {
			t.Errorf("Do: %v after %v, want nil at once", err, took)
		}
		srv.Accept()
	})
}
