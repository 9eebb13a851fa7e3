package lock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

// A wait at a wrong address says which address, and what is wrong with it.
func TestLockAtAWrongAddress(t *testing.T) {
	t.Parallel()
	const addr = "127.0.0.1:1"
	c := must.Get(framework.NewClient(addr))(t)
	t.Cleanup(func() { must.OK(t, c.Close()) })
	m := must.Get(lock.NewMutex(c, "/wrong-address"))(t)
	for name, locks := range map[string]func(context.Context) (*lock.Lease, error){"Lock": m.Lock, "TryLock": m.TryLock} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := locks(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v, want the address and the cause", name, err)
		}
	}
}
