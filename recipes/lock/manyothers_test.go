package lock_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// A contender behind many of another kind reads which of them came first in few requests. If it may not
// read their data, it reads each Stat, for a listing and once more before it is refused.
func TestManyContendersOfAnotherKindCostFewRequests(t *testing.T) {
	t.Parallel()
	const others = 200
	for _, tc := range []struct {
		name, child string
		kind        int // of sharers
	}{
		{"a mutex beside permits", "/leases/x-lease-", 0},
		{"a writer beside permits", "/leases/x-lease-", 4},
		{"a semaphore beside a mutex's contenders", "/x-lock-", 7},
	} {
		for perms, most := range map[acl.Permission]int{acl.All: 25, acl.All &^ acl.Read: 2*others + 25} {
			t.Run(fmt.Sprintf("%s, %v", tc.name, perms), func(t *testing.T) {
				inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
					c, path := env.Client(t), "/many"
					must.Get(c.Create(t.Context(), path+"/leases", nil, framework.WithParents()))(t)
					var made string
					for range others {
						made = must.Get(c.Create(t.Context(), path+tc.child, nil, framework.Ephemeral(), framework.Sequential(),
							framework.WithACL(acl.Entry{Perms: perms, Scheme: "world", ID: "anyone"})))(t)
					}
					second, route := onRoute(t, env)
					want := lock.ErrMixed
					if _, _, err := second.Exists(t.Context(), made); err != nil { // newer servers refuse a Stat, too
						want = framework.ErrNoAuth
					}
					requests := route.Rules().Add(fault.Rule{Action: fault.Pass, Times: fault.Forever})
					if _, err := sharers()[tc.kind].lock(t, second, path).TryLock(asOwner(t, "second")); !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
					if n := requests.Hits(); n > most {
						t.Errorf("%d requests beside %d contenders of another kind, want at most %d", n, others, most)
					} else {
						t.Logf("%d requests", n)
					}
				}, zkenv.Only("it counts requests", zkenv.Embedded))
			})
		}
	}
}
