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

// A leader that is isolated or gone is succeeded, and comes back as a follower.
func TestEnsembleOutlivesItsLeader(t *testing.T) {
	for name, harm := range map[string]func(*zktest.Ensemble, *zktest.Server) error{
		"isolated": (*zktest.Ensemble).Isolate,
		"killed":   func(_ *zktest.Ensemble, s *zktest.Server) error { return s.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			e := zktest.SharedEnsemble(t)
			old := must.Get(e.Leader(t.Context()))(t)
			must.OK(t, harm(e, old))
			var leader *zktest.Server
			zktest.Eventually(t, soon, "another member leads", func() bool {
				var err error
				leader, err = e.Leader(t.Context())
				return err == nil && leader != old
			})
			create(t, connect(t, leader), "/after-the-leader-"+name, zk.FlagEphemeral)
			must.OK(t, e.Repair(t.Context()))
			if mode, err := old.Mode(t.Context()); err != nil || mode != zktest.Follower {
				t.Errorf("Mode() of the old leader = %q, %v; want follower", mode, err)
			}
		})
	}
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
