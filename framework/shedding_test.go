package framework_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// throttled is the rule of a server that refuses requests by itself to shed load, until
// the rule is removed. Op 0 means every request that such a server refuses.
func throttled(op fault.Op) fault.Rule {
	return fault.Rule{Op: op, Action: fault.Refuse, Code: fault.Throttled, Times: fault.Forever}
}

// A follower that refuses every request answers them and keeps the session alive. Its
// refusals prove nothing about the leader, so the lease ends in time.
func TestLease_is_lost_in_time_on_a_throttled_server(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv.Addr(), framework.WithSessionTimeout(span), framework.WithDialer(srv.Dial))
		sleep(2 * span)
		h, held := mustTakeHold(t, c), c.Session().ID
		must.OK(t, h.Secure(t.Context()))
		shed := srv.Rules().Add(throttled(0))
		deadline := h.Deadline()
		lost := false
		for end := deadline.Add(span); !lost && time.Now().Before(end); sleep(span / 40) {
			_, _ = c.Set(within(t, span/40), "/", nil, framework.AnyVersion) // a write; its refusal is the point
			select {
			case <-h.Lost():
				lost = true
			default:
			}
			if now := h.Deadline(); now.After(deadline) {
				t.Fatalf("%d refusals moved the deadline by %v", shed.Hits(), now.Sub(deadline))
			}
		}
		if late := time.Since(deadline); !lost || late > span/10 {
			t.Errorf("lost: %v, %v after the deadline", lost, late)
		}
		if shed.Hits() < 3 {
			t.Errorf("only %d requests were refused", shed.Hits())
		}
		wantEqual(t, "the session, without which the lease's end shows nothing", slices.ContainsFunc(srv.Sessions(), func(s zkserver.SessionInfo) bool { return s.ID == held }), true)
	})
}

// The server refuses more deletions than a client has under way at once. Each pauses; one
// that the server accepts is done meanwhile.
func TestBackgroundDelete_pauses_alone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const refusedOnes, soon = 100, 50 * time.Millisecond // less than the pause
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial))
		orphan := func(parent string) string {
			return mustCreate(t, c, parent+"/node-", "", framework.Ephemeral(), framework.Sequential(), framework.WithParents())
		}
		free := orphan("/free")
		rule := throttled(fault.Delete)
		rule.Path = "/refused/*"
		shed := srv.Rules().Add(rule)
		for range refusedOnes {
			c.Discard(orphan("/refused"))
		}
		c.Discard(free)
		sleep(soon)
		wantExists(t, c, free, false)
		if shed.Hits() < refusedOnes || c.PendingDeletes() != refusedOnes {
			t.Errorf("%d refusals, %d deletions pending; want %d to pause", shed.Hits(), c.PendingDeletes(), refusedOnes)
		}
		shed.Remove()
		zktest.Eventually(t, time.Minute, "all deletions are done", func() bool { return c.PendingDeletes() == 0 })
	})
}
