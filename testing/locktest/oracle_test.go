package locktest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
)

// A record is a test that only records what is reported to it.
type record struct {
	testing.TB
	errors []string
}

func (r *record) Helper() {}

func (r *record) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func mustLock(t testing.TB, c *framework.Client, path string) *lock.Lease {
	t.Helper()
	m := must.Get(lock.NewMutex(c, path))(t)
	return must.Get(m.Lock(t.Context()))(t)
}

// TestOracle tells the oracle of leases of different locks, as though they were of one.
func TestOracle(t *testing.T) {
	t.Parallel()
	type step struct {
		enter, share, leave int // number of the lease, in the order of their fences, from 1
		permits             int // of 3 that share takes; 0 if they are not counted
		expire              bool
	}
	cases := map[string]struct {
		steps []step
		want  string // what is reported; "" for nothing
	}{
		"one after the other":                     {[]step{{enter: 1}, {leave: 1}, {enter: 2}, {leave: 2}}, ""},
		"two at once":                             {[]step{{enter: 1}, {enter: 2}}, "neither lost nor released"},
		"one after the loss of the other":         {[]step{{enter: 1}, {expire: true}, {enter: 3}}, ""},
		"again by the same hold":                  {[]step{{enter: 1}, {enter: 4}, {leave: 1}, {leave: 4}}, ""},
		"while one of two leases of a hold is in": {[]step{{enter: 1}, {enter: 4}, {leave: 1}, {enter: 2}}, "neither lost nor released"},
		"several that share":                      {[]step{{share: 2}, {share: 1}, {leave: 1}, {leave: 2}}, ""},
		"one alone beside one that shares":        {[]step{{share: 1}, {enter: 2}}, "neither lost nor released"},
		"one that shares beside one alone":        {[]step{{enter: 1}, {share: 2}}, "neither lost nor released"},
		"permits up to the number":                {[]step{{share: 1, permits: 2}, {share: 2, permits: 1}}, ""},
		"a permit more than there are":            {[]step{{share: 1, permits: 2}, {share: 2, permits: 2}}, "4 permits of 3"},
		"permits after their holder has left":     {[]step{{share: 1, permits: 2}, {leave: 1}, {share: 2, permits: 3}}, ""},
		"a fence that falls":                      {[]step{{enter: 2}, {leave: 2}, {enter: 1}}, "must grow"},
		"a fence that stays":                      {[]step{{enter: 1}, {leave: 1}, {enter: 4}}, "must grow"},
		"a fence that falls behind one alone":     {[]step{{enter: 2}, {leave: 2}, {share: 1}}, "must grow"},
		"a fence that falls behind one shared":    {[]step{{share: 2}, {leave: 2}, {enter: 1}}, "must grow"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				route := env.Route(t)
				c, other := route.Client(t), env.Client(t)
				leases := []*lock.Lease{nil, mustLock(t, c, "/oracle/1"), mustLock(t, c, "/oracle/2"), mustLock(t, other, "/oracle/3"), mustLock(t, c, "/oracle/1")}
				r := &record{TB: t}
				oracle := locktest.NewOracle(r)
				for _, s := range tc.steps {
					switch {
					case s.expire:
						route.Expire(t)
						<-leases[1].Lost()
					case s.enter > 0:
						oracle.Enter(leases[s.enter])
					case s.permits > 0:
						oracle.EnterPermits(leases[s.share], s.permits, 3)
					case s.share > 0:
						oracle.EnterShared(leases[s.share])
					default:
						oracle.Leave(leases[s.leave])
					}
				}
				switch {
				case tc.want == "" && len(r.errors) > 0:
					t.Errorf("reported %q, want nothing", r.errors)
				case tc.want != "" && (len(r.errors) != 1 || !strings.Contains(r.errors[0], tc.want)):
					t.Errorf("reported %q, want one that says %q", r.errors, tc.want)
				}
			}, zkenv.Only("no server has a part in it", zkenv.Embedded))
		})
	}
}

func TestOracleCounts(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route := env.Route(t)
		first, second := mustLock(t, route.Client(t), "/oracle/1"), mustLock(t, env.Client(t), "/oracle/2")
		oracle := locktest.NewOracle(t)
		oracle.EnterShared(first)
		oracle.EnterShared(second)
		if oracle.Grants() != 2 || oracle.Holders() != 2 {
			t.Errorf("%d grants, %d holders; want 2 and 2", oracle.Grants(), oracle.Holders())
		}
		route.Expire(t)
		<-first.Lost()
		if oracle.Grants() != 2 || oracle.Holders() != 1 {
			t.Errorf("%d grants, %d holders after a loss; want 2 and 1", oracle.Grants(), oracle.Holders())
		}
		oracle.Leave(second)
		if oracle.Holders() != 0 {
			t.Errorf("%d holders at the end, want 0", oracle.Holders())
		}
		if err := errors.Join(first.Err(), second.Err()); !errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrReleased) {
			t.Errorf("leases: %v, want one lost and none released: the oracle does not touch them", err)
		}
	}, zkenv.Only("no server has a part in it", zkenv.Embedded))
}
