package httplock_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
)

func TestALeakedLease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *service) {
		m := mutex(t, s.mine)
		var mu sync.Mutex
		var leaked []string
		var leases []*lock.Lease
		h := httplock.WithOwner(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l, err := m.TryLock(r.Context())
			if err != nil {
				w.WriteHeader(httplock.Status(err))
				return
			}
			leases = append(leases, l)
		}), func(_ *http.Request, paths []string) {
			mu.Lock()
			defer mu.Unlock()
			leaked = append(leaked, paths...)
		})
		// One goroutine, and a base context whose owner all requests would share.
		base := lock.ContextWithOwner(t.Context(), lock.NewOwner("the server"))
		if got := request(base, h); got.Code != http.StatusOK {
			t.Fatalf("status %d, want 200", got.Code)
		}
		if !slices.Equal(leaked, []string{"/report"}) {
			t.Errorf("reported %q, want /report", leaked)
		}
		if got := request(base, h); got.Code != http.StatusConflict {
			t.Errorf("the next request of the connection: status %d, want 409", got.Code)
		}
		for _, l := range leases {
			must.OK(t, l.Release(t.Context()))
		}
		if got := request(base, h); got.Code != http.StatusOK || len(leaked) != 2 {
			t.Errorf("after the release: status %d, reported %q", got.Code, leaked)
		}
		_ = leases[1].Release(t.Context())
	})
}

// TestOwnerHolds names paths in the ensemble.
func TestOwnerHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *service) {
		owner := lock.NewOwner("job")
		ctx := lock.ContextWithOwner(t.Context(), owner)
		if got := owner.Holds(); len(got) != 0 {
			t.Errorf("holds %q before the first lock", got)
		}
		m := mutex(t, s.mine)
		rw := must.Get(lock.NewRWMutex(must.Get(s.mine.Namespace("another"))(t), "/report"))(t)
		var last *lock.Lease
		for _, l := range []lock.Locker{m, m, rw.Read()} {
			last = must.Get(l.Lock(ctx))(t)
		}
		if got := owner.Holds(); !slices.Equal(got, []string{"/another/report", "/report"}) {
			t.Errorf("holds %q, want both, once each", got)
		}
		for range 2 {
			must.OK(t, m.Unlock(ctx))
		}
		if got := owner.Holds(); !slices.Equal(got, []string{"/another/report"}) {
			t.Errorf("holds %q after the release", got)
		}
		must.OK(t, s.server.Expire(s.mine.Session().ID))
		<-last.Lost()
		synctest.Wait()
		if got := owner.Holds(); len(got) != 0 {
			t.Errorf("holds %q after the loss", got)
		}
		if got := (lock.Owner{}).Holds(); got != nil {
			t.Errorf("the zero Owner holds %q", got)
		}
	})
}
