package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// connectTimeout is the client's default.
const connectTimeout = 5 * time.Second

// TestTryAcquireIsBounded tries to acquire in an outage, with a context that never ends.
func TestTryAcquireIsBounded(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(*zkserver.Server){
		"servers are gone":   func(srv *zkserver.Server) { srv.Refuse(); srv.Cut() },
		"servers are silent": func(srv *zkserver.Server) { srv.Freeze() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
				c := recipetest.Client(t, srv.Addr(), framework.WithDialer(srv.Dial))
				s := newSemaphore(t, c, "/permits", 2)
				mustRelease(t, mustAcquire(t, s, 2))
				outage(srv)
				for range 2 {
					began := time.Now()
					l, err := s.TryAcquire(context.Background(), 2)
					if l != nil || !errors.Is(err, framework.ErrNotConnected) || errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("TryAcquire: %v, %v; want ErrNotConnected alone", l, err)
					}
					if took := time.Since(began); took > connectTimeout {
						t.Errorf("TryAcquire returned after %v, want %v at the most", took, connectTimeout)
					}
				}
				srv.Accept()
				srv.Thaw()
			})
		})
	}
}

// TestDoWithPermits has an outage begin while fn works under permits.
func TestDoWithPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
		c := recipetest.Client(t, srv.Addr(), framework.WithDialer(srv.Dial))
		began := time.Now()
		err := lock.Do(t.Context(), permits{newSemaphore(t, c, "/permits", 2), 2}, func(context.Context, *lock.Lease) error {
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
