package zkenv_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

const generous = 30 * time.Second

func TestClientsOfAnEnvSeeOneTree(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		a, b := env.Client(t), env.Client(t, framework.WithNamespace("seen"))
		must.Get(a.Create(t.Context(), "/seen/node", []byte("x"), framework.WithParents()))(t)
		must.OK(t, b.Sync(t.Context(), "/node"))
		if data, _, err := b.Get(t.Context(), "/node"); err != nil || string(data) != "x" {
			t.Errorf("data %q, %v; want x", data, err)
		}
		must.OK(t, a.DeleteTree(t.Context(), "/seen"))
	})
}

func TestRouteIsHarmedAlone(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route := env.Route(t)
		harmed, other := route.Client(t), env.Client(t)
		route.ResetRequests()
		lost := route.Rules().Add(fault.Rule{Op: fault.Exists, Path: "/", Action: fault.DropReply})
		for _, c := range []*framework.Client{harmed, other} {
			must.Get2(c.Exists(t.Context(), "/"))(t)
		}
		if lost.Hits() != 1 || route.Count(fault.Exists) != 2 {
			t.Errorf("%d hits, %d requests; want 1 and 2", lost.Hits(), route.Count(fault.Exists))
		}
		route.Blackhole(zkproxy.Both)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, _, err := harmed.Exists(ctx, "/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v through a blackhole, want DeadlineExceeded", err)
		}
		must.Get2(other.Exists(t.Context(), "/"))(t)
	})
}

func TestExpireEndsTheSessionsOfAWay(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route := env.Route(t)
		c := route.Client(t)
		before := c.Session().ID
		node := must.Get(c.Create(t.Context(), "/expired-", nil, framework.Ephemeral(), framework.Sequential()))(t)
		zktest.Eventually(t, generous, "the node is listed", func() bool { return slices.Equal(env.Ephemerals(t, before), []string{node}) })
		route.Expire(t)
		zktest.Eventually(t, generous, "the next session", func() bool {
			return c.State() == framework.Connected && c.Session().ID != before
		})
		zktest.Eventually(t, generous, "the node is gone", func() bool { return len(env.Ephemerals(t, before)) == 0 })
	})
}

func TestFrozenMemberAnswersNothing(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		first, last := members[0], members[len(members)-1]
		c := first.Client(t)
		first.Freeze(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, _, err := c.Exists(ctx, "/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v from a frozen member, want DeadlineExceeded", err)
		}
		if last != first {
			must.Get2(last.Client(t).Exists(t.Context(), "/"))(t)
		}
		first.Thaw(t)
		must.Get2(c.Exists(t.Context(), "/"))(t)
	}, zkenv.Breakable())
}

func TestIsolatedMemberAnswersFromWhatItHas(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		follower, other := members[0], members[len(members)-1].Client(t)
		c := follower.Client(t)
		must.Get(other.Create(t.Context(), "/node", []byte("old"), framework.Idempotent()))(t)
		must.OK(t, c.Sync(t.Context(), "/node"))
		follower.Isolate(t)
		must.Get(other.Set(t.Context(), "/node", []byte("new"), framework.AnyVersion))(t)
		if data, _, err := c.Get(t.Context(), "/node"); err != nil || string(data) != "old" {
			t.Errorf("data %q, %v; want old", data, err)
		}
		follower.Heal()
		must.OK(t, c.Sync(t.Context(), "/node"))
		if data, _, err := c.Get(t.Context(), "/node"); err != nil || string(data) != "new" {
			t.Errorf("data %q, %v; want new", data, err)
		}
	}, zkenv.Breakable(), zkenv.Only("it takes another member", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
}

// TestADayInABubble has no real environment: it would take a day.
func TestADayInABubble(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		before := c.Session().ID
		<-time.After(24 * time.Hour)
		if now := c.Session().ID; c.State() != framework.Connected || now != before {
			t.Errorf("%v in session %#x after a day, want Connected in %#x", c.State(), now, before)
		}
	}, zkenv.Only("virtual time", zkenv.Embedded))
}

// The version of an embedded server follows from the seed and the test's name, or is the one that the
// environment names.
func TestDrawVersion(t *testing.T) {
	for name, want := range map[string]string{"3.8.4": "3.8.4-", "": "3."} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ZK_EMBEDDED", name)
			srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
			addr := must.Get(srv.Listen("127.0.0.1:0"))(t)
			nc := must.Get(net.Dial("tcp", addr))(t)
			defer nc.Close()
			must.Get(nc.Write([]byte("srvr")))(t)
			answer := must.Get(io.ReadAll(nc))(t)
			if !strings.Contains(string(answer), "Zookeeper version: "+want) {
				t.Errorf("srvr: %s", answer)
			}
			c := must.Get(framework.NewClient(addr))(t)
			defer c.Close()
			must.Get(c.Create(t.Context(), "/ttl", nil, framework.TTL(time.Hour)))(t)
		})
	}
}

func TestDrawVersion_skips_a_test_for_others(t *testing.T) {
	t.Run("3.8.0", func(t *testing.T) {
		t.Setenv("ZK_EMBEDDED", "3.8.0")
		zkenv.DrawVersion(t, zkenv.Versions("it is new", "3.9.6"))
		t.Error("the test goes on")
	})
}
