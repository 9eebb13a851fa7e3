package zktest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/testing/zktest"
)

// overNetworks runs a test with an ensemble over each kind of network.
func overNetworks(t *testing.T, body func(t *testing.T, e *zktest.Ensemble)) {
	t.Helper()
	t.Run("forwarders", func(t *testing.T) {
		t.Parallel()
		body(t, zktest.RunEnsemble(t, 3, zktest.WithSyncLimit(4)))
	})
	t.Run("namespaces", func(t *testing.T) {
		t.Parallel()
		needNamespaces(t)
		body(t, zktest.RunEnsemble(t, 3, zktest.WithSyncLimit(4), zktest.WithNamespaces()))
	})
}

func parts(t testing.TB, e *zktest.Ensemble) (leader *zktest.Server, followers []*zktest.Server) {
	t.Helper()
	leader, err := e.Leader(t.Context())
	must(t, err)
	followers, err = e.Followers(t.Context())
	must(t, err)
	if len(followers) != 2 {
		t.Fatalf("%d followers; want 2", len(followers))
	}
	return leader, followers
}

// gaveUp reports whether a member answers its clients, and says that it serves nobody.
func gaveUp(t testing.TB, s *zktest.Server) bool {
	t.Helper()
	_, err := s.Mode(t.Context())
	return errors.Is(err, zktest.ErrNotServing)
}

// The ensembles of both networks are cut at the same time, and each goes by its own cuts.
func TestACutMemberServesNobodyUntilItIsHealed(t *testing.T) {
	t.Parallel()
	zktest.Shared(t) // for its rules about a missing server
	overNetworks(t, func(t *testing.T, e *zktest.Ensemble) {
		leader, followers := parts(t, e)
		cut, client := followers[0], connect(t, leader)

		must(t, e.Isolate(cut))
		zktest.Eventually(t, soon, "the member that is cut off gives up, and tells its clients", func() bool { return gaveUp(t, cut) })
		create(t, client, "/written-by-the-majority", 0)
		if conn, _, err := zk.Connect([]string{cut.Addr()}, time.Second, zk.WithLogger(quiet{})); err == nil {
			if _, err := conn.Create("/written-by-the-minority", nil, 0, zk.WorldACL(zk.PermAll)); err == nil {
				t.Error("a member without a majority took a write")
			}
			conn.Close()
		}

		must(t, e.Heal(cut))
		must(t, cut.AwaitReady(t.Context()))
		if ok, _, err := connect(t, cut).Exists("/written-by-the-majority"); err != nil || !ok {
			t.Errorf("what the majority wrote is at the healed member: %v, %v; want it there", ok, err)
		}
	})
}

// Either way of a connection is enough to bring it down.
func TestAFollowerNeedsBothWaysToItsLeader(t *testing.T) {
	t.Parallel()
	zktest.Shared(t)
	overNetworks(t, func(t *testing.T, e *zktest.Ensemble) {
		for _, unheard := range []string{"follower", "leader"} {
			leader, followers := parts(t, e)
			follower, other := followers[0], followers[1]
			if unheard == "leader" {
				must(t, e.Cut(leader, follower))
			} else {
				must(t, e.Cut(follower, leader))
			}
			zktest.Eventually(t, soon, "with an unheard "+unheard+" the follower gives up", func() bool { return gaveUp(t, follower) })
			if mode, err := other.Mode(t.Context()); err != nil || mode != zktest.Follower {
				t.Errorf("Mode() of the other follower = %q, %v; want follower", mode, err)
			}
			must(t, e.Mend(t.Context()))
		}
	})
}

func TestClientsAreCutOffInNamespacesOnly(t *testing.T) {
	t.Parallel()
	zktest.Shared(t)
	overNetworks(t, func(t *testing.T, e *zktest.Ensemble) {
		leader, followers := parts(t, e)
		cut := followers[0]
		err := e.CutClients(cut)
		if errors.Is(err, zktest.ErrNoNamespaces) {
			if _, err := cut.Mode(t.Context()); err != nil {
				t.Errorf("Mode() after a cut that could not be made: %v", err)
			}
			return
		}
		must(t, err)
		ctx, cancel := deadline(t, 500*time.Millisecond)
		defer cancel()
		if mode, err := cut.Mode(ctx); !errors.Is(err, ctx.Err()) || ctx.Err() == nil {
			t.Errorf("Mode() of a member that its clients don't reach = %q, %v; want the context's error", mode, err)
		}
		if n, err := leader.SyncedFollowers(t.Context()); err != nil || n != 2 {
			t.Errorf("synced followers: %d, %v; want both, which the leader reaches", n, err)
		}
		must(t, e.Mend(t.Context()))
	})
}
