package zktest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestEnsembleHasOneLeader(t *testing.T) {
	e := zktest.SharedEnsemble(t)
	leader := must.Get(e.Leader(t.Context()))(t)
	followers := must.Get(e.Followers(t.Context()))(t)
	if len(followers) != 2 {
		t.Fatalf("%d followers; want 2", len(followers))
	}
	if followers[0] == leader || followers[1] == leader || followers[0] == followers[1] {
		t.Errorf("leader %s, followers %s and %s; want three servers", leader.Addr(), followers[0].Addr(), followers[1].Addr())
	}
}

// The reason for all the forwarders: for the ensemble the session has expired,
// while the follower that its client is connected to goes on answering.
func TestIsolatedFollower_answers_expired_sessions(t *testing.T) {
	e := zktest.SharedEnsemble(t)
	leader := must.Get(e.Leader(t.Context()))(t)
	followers := must.Get(e.Followers(t.Context()))(t)
	follower := followers[0]
	// watcher's session must outlive the cut, as does its connection.
	watcher, client := connect(t, leader), connectFor(t, follower, time.Second)
	create(t, client, "/isolated", zk.FlagEphemeral)
	if ok, _, err := watcher.Exists("/isolated"); err != nil || !ok {
		t.Fatalf("node at the leader: %v, %v; want it there", ok, err)
	}

	must.OK(t, e.Isolate(follower))
	zktest.Eventually(t, soon, "the session expires at the leader", func() bool {
		ok, _, err := watcher.Exists("/isolated")
		return err == nil && !ok
	})
	if ok, _, err := client.Exists("/isolated"); err != nil || !ok {
		t.Errorf("node at the isolated follower: %v, %v; want it still there", ok, err)
	}
	zktest.Eventually(t, soon, "the follower gives up", func() bool {
		_, err := follower.Mode(t.Context())
		return err != nil
	})

	must.OK(t, e.Heal(follower))
	must.OK(t, follower.AwaitReady(t.Context()))
	if ok, _, err := connect(t, follower).Exists("/isolated"); err != nil || ok {
		t.Errorf("node at the healed follower: %v, %v; want it gone", ok, err)
	}
}

func TestIsolatedLeaderIsSucceeded(t *testing.T) {
	e := zktest.SharedEnsemble(t)
	old := must.Get(e.Leader(t.Context()))(t)
	must.OK(t, e.Isolate(old))
	zktest.Eventually(t, soon, "another member leads", func() bool {
		leader, err := e.Leader(t.Context())
		return err == nil && leader != old
	})
	must.OK(t, e.Repair(t.Context()))
	if mode, err := old.Mode(t.Context()); err != nil || mode != zktest.Follower {
		t.Errorf("Mode() of the old leader = %q, %v; want follower", mode, err)
	}
}

func TestEnsembleOutlivesItsLeader(t *testing.T) {
	e := zktest.SharedEnsemble(t)
	old := must.Get(e.Leader(t.Context()))(t)
	must.OK(t, old.Kill())
	leader := must.Get(e.Leader(t.Context()))(t)
	if leader == old {
		t.Errorf("leader = %s, which is dead", leader.Addr())
	}
	create(t, connect(t, leader), "/after-the-leader", zk.FlagEphemeral)
}

func TestClosedEnsembleStaysClosed(t *testing.T) {
	t.Parallel()
	e := zktest.RunEnsemble(t, 3)
	stranger := zktest.Shared(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Isolate() of a server that is no member: want a panic")
			}
		}()
		_ = e.Isolate(stranger)
	}()
	if got, want := strings.Count(e.Addr(), ","), 2; got != want {
		t.Errorf("Addr() = %s; want three addresses", e.Addr())
	}
	must.OK(t, e.Close())
	if err := e.Repair(t.Context()); !errors.Is(err, zktest.ErrClosed) {
		t.Errorf("Repair() after Close = %v; want ErrClosed", err)
	}
	ctx := deadline(t, 100*time.Millisecond)
	if leader, err := e.Leader(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Leader() after Close = %v, %v; want the context's error", leader, err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second Close() = %v; want nil", err)
	}
}

// Observers serve clients, are cut off and killed as the others are, and are part of what Repair repairs.
func TestObservers(t *testing.T) {
	t.Parallel()
	for master, opts := range map[zktest.Mode][]zktest.Option{
		zktest.Leader:   {zktest.WithObservers(1)},
		zktest.Follower: {zktest.WithObservers(1), zktest.WithNamespaces(), zktest.WithObserverMasters()},
	} {
		t.Run(string(master), func(t *testing.T) {
			t.Parallel()
			if master == zktest.Follower {
				needNamespaces(t)
			}
			e := zktest.RunEnsemble(t, 3, opts...)
			observer := e.Servers[3]
			for range 2 {
				if mode, err := observer.Mode(t.Context()); err != nil || mode != zktest.Observer {
					t.Fatalf("Mode() = %q, %v; want observer", mode, err)
				}
				client := connect(t, observer)
				if _, err := client.Sync("/"); err != nil {
					t.Errorf("sync by the observer: %v", err)
				}
				for _, s := range e.Servers[:3] {
					n, mode := must.Get(s.SyncedObservers(t.Context()))(t), must.Get(s.Mode(t.Context()))(t)
					if n > 0 && mode != master {
						t.Errorf("the observer learns from a %s, want a %s", mode, master)
					}
				}
				must.OK(t, e.Isolate(observer))
				must.OK(t, observer.Kill())
				must.OK(t, e.Repair(t.Context()))
			}
		})
	}
}
