package zktest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// Both networks are cut at the same time, and each ensemble has its own cuts.
func TestPartitions(t *testing.T) {
	t.Parallel()
	zktest.Shared(t) // for its rules about a missing server
	for _, c := range []struct {
		network string
		need    func(testing.TB)
		opts    []zktest.Option
	}{
		{"forwarders", func(testing.TB) {}, nil},
		{"namespaces", needNamespaces, []zktest.Option{zktest.WithNamespaces()}},
	} {
		t.Run(c.network, func(t *testing.T) {
			t.Parallel()
			c.need(t)
			e := zktest.RunEnsemble(t, 3, c.opts...)
			cutMember(t, e)
			oneDirection(t, e)
			cutClients(t, e)
		})
	}
}

func parts(t testing.TB, e *zktest.Ensemble) (leader *zktest.Server, followers []*zktest.Server) {
	t.Helper()
	zktest.Eventually(t, soon, "one leads and two follow", func() bool {
		var err error
		if leader, err = e.Leader(t.Context()); err == nil {
			followers, err = e.Followers(t.Context())
		}
		return err == nil && len(followers) == 2 && !slices.Contains(followers, leader)
	})
	return leader, followers
}

// abandoned reports whether a member answers its clients, and says that it serves no client.
func abandoned(t testing.TB, s *zktest.Server) bool {
	t.Helper()
	_, err := s.Mode(t.Context())
	return errors.Is(err, zktest.ErrNotServing)
}

// follows reports whether a member follows a leader.
func follows(t testing.TB, s *zktest.Server) bool {
	t.Helper()
	mode, err := s.Mode(t.Context())
	return err == nil && mode == zktest.Follower
}

func cutMember(t *testing.T, e *zktest.Ensemble) {
	t.Helper()
	t.Run("a member that is cut off serves nobody until it is healed", func(t *testing.T) {
		leader, followers := parts(t, e)
		cut, client := followers[0], connect(t, leader)

		must.OK(t, e.Isolate(cut))
		zktest.Eventually(t, soon, "the member gives up, and its clients reach it to hear so", func() bool { return abandoned(t, cut) })
		create(t, client, "/written-by-the-majority", 0)
		conn, _, err := zk.Connect([]string{cut.Addr()}, time.Second, zk.WithLogger(quiet{}))
		must.OK(t, err)
		defer conn.Close()
		if _, err := conn.Create("/written-by-the-minority", nil, 0, zk.WorldACL(zk.PermAll)); err == nil {
			t.Error("a member without a majority took a write")
		}

		must.OK(t, e.Heal(cut))
		zktest.Eventually(t, soon, "the member follows", func() bool { return follows(t, cut) })
		if ok, _, err := connect(t, cut).Exists("/written-by-the-majority"); err != nil || !ok {
			t.Errorf("what the majority wrote is at the healed member: %v, %v; want it there", ok, err)
		}
	})
	must.OK(t, e.Repair(t.Context()))
}

// oneDirection cuts one direction of a connection, either of which is enough to bring it down.
func oneDirection(t *testing.T, e *zktest.Ensemble) {
	t.Helper()
	t.Run("a follower needs both ways to its leader", func(t *testing.T) {
		for _, unheard := range []string{"follower", "leader"} {
			leader, followers := parts(t, e)
			follower, other := followers[0], followers[1]
			if unheard == "leader" {
				must.OK(t, e.Cut(leader, follower))
			} else {
				must.OK(t, e.Cut(follower, leader))
			}
			zktest.Eventually(t, soon, "with an unheard "+unheard+" the follower gives up", func() bool { return abandoned(t, follower) })
			zktest.Eventually(t, soon, "the other follower follows", func() bool { return follows(t, other) })
			must.OK(t, e.Repair(t.Context()))
		}
	})
	must.OK(t, e.Repair(t.Context()))
}

func cutClients(t *testing.T, e *zktest.Ensemble) {
	t.Helper()
	t.Run("clients are cut off in namespaces only", func(t *testing.T) {
		leader, followers := parts(t, e)
		cut := followers[0]
		err := e.CutClients(cut)
		if errors.Is(err, zktest.ErrNoNamespaces) {
			if _, err := cut.Mode(t.Context()); err != nil {
				t.Errorf("Mode() after a cut that could not be made: %v", err)
			}
			return
		}
		must.OK(t, err)
		ctx := deadline(t, 500*time.Millisecond)
		if mode, err := cut.Mode(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Mode() of a member that its clients don't reach = %q, %v; want the context's error", mode, err)
		}
		zktest.Eventually(t, soon, "the leader reaches both followers", func() bool {
			n, err := leader.SyncedFollowers(t.Context())
			return err == nil && n == 2
		})
	})
	must.OK(t, e.Repair(t.Context()))
}
