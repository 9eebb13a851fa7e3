package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// sessionAtStake is the session timeout of the tests that lose sessions.
const sessionAtStake = 4 * time.Second

// lossAndSuccession lets holder have the mutex at path and next wait for it, and calls cutOff. It
// returns when the holder learned of its loss and when next was granted, both seen from outside
// ZooKeeper.
func lossAndSuccession(t testing.TB, holder, next *framework.Client, path string, cutOff func()) (lost, granted time.Time) {
	t.Helper()
	lease := mustLock(t, newMutex(t, holder, path))
	observed := make(chan time.Time, 1)
	go func() {
		<-lease.Lost()
		observed <- time.Now()
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := lockLater(ctx, newMutex(t, next, path))
	awaitContenders(t, next, path, 2)
	cutOff()
	lost = must.Receive(t, observed, "the loss of the lease")
	if lease.Err() == nil {
		t.Error("Lost is closed and Err is nil")
	}
	got := must.Receive(t, done, "the grant to the next")
	if got.err != nil {
		t.Fatal(got.err)
	}
	before := lease.Fence()
	if after := got.lease.Fence(); after <= before {
		t.Errorf("fence %d after %d: must grow", after, before)
	}
	mustRelease(t, got.lease)
	return lost, got.at
}

// TestLossBeforeSuccession silently cuts the holder off, ten times at once. The moments are spread
// over a second, to meet heartbeats and ticks at all phases.
func TestLossBeforeSuccession(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				next := env.Client(t)
				holder, proxy := onRoute(t, env, framework.WithSessionTimeout(sessionAtStake))
				lost, granted := lossAndSuccession(t, holder, next, fmt.Sprintf("/succession/%d", i), func() {
					phase := time.NewTimer(time.Duration(i) * 100 * time.Millisecond)
					<-phase.C
					if i%2 == 0 {
						proxy.Blackhole(zkproxy.Both)
					} else {
						proxy.Blackhole(zkproxy.ToServer) // replies would still come
					}
				})
				if !lost.Before(granted) {
					t.Errorf("lost %v after the next was granted", lost.Sub(granted))
				}
				t.Logf("lost %v before the next was granted", granted.Sub(lost).Round(time.Millisecond))
			})
		})
	}
}

// TestLossBeforeSuccessionOnFrozenServer stops the holder's server for longer than
// the session lasts. Where it is the only one it expires the session when it goes on.
func TestLossBeforeSuccessionOnFrozenServer(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		server := members[0]
		holder := server.Route(t).Client(t, framework.WithSessionTimeout(sessionAtStake))
		next := members[len(members)-1].Client(t, framework.WithSessionTimeout(20*time.Second))
		lost, granted := lossAndSuccession(t, holder, next, "/succession/frozen", func() {
			server.Freeze(t)
			thaw := time.AfterFunc(sessionAtStake+time.Second, func() { server.Thaw(t) })
			t.Cleanup(func() { thaw.Stop() })
		})
		if !lost.Before(granted) {
			t.Errorf("lost %v after the next was granted", lost.Sub(granted))
		}
		t.Logf("lost %v before the next was granted", granted.Sub(lost).Round(time.Millisecond))
	}, zkenv.Breakable())
}

// TestLossBeforeSuccessionOnIsolatedFollower cuts the holder's server off from
// its leader: it goes on answering reads and pings, which prove nothing.
func TestLossBeforeSuccessionOnIsolatedFollower(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		follower := members[0]
		holder := follower.Route(t).Client(t, framework.WithSessionTimeout(sessionAtStake))
		next := members[len(members)-1].Client(t)
		lost, granted := lossAndSuccession(t, holder, next, "/succession/follower", func() { follower.Isolate(t) })
		if !lost.Before(granted) {
			t.Errorf("lost %v after the next was granted", lost.Sub(granted))
		}
		t.Logf("lost %v before the next was granted", granted.Sub(lost).Round(time.Millisecond))
	}, zkenv.Breakable(), zkenv.Only("it takes a follower and its leader", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
}

// TestLossBeforeSuccessionOnIsolatedLeader cuts the holder's server, the leader, off from
// both followers. The followers elect a new leader. If they are killed and started again,
// they do so seconds before the old leader notices that it has lost its followers. Until
// then the old leader answers pings, reads, syncs and handshakes.
func TestLossBeforeSuccessionOnIsolatedLeader(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"followers go on": false, "followers restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				members := env.Members()
				followers, leader := members[:len(members)-1], members[len(members)-1]
				holder := leader.Route(t).Client(t, framework.WithSessionTimeout(sessionAtStake),
					framework.WithLeaseMargin(zktest.DefaultTickTime))
				next := followers[0].Client(t, framework.WithSessionTimeout(20*time.Second))
				var restarts sync.WaitGroup
				lost, granted := lossAndSuccession(t, holder, next, "/succession/leader", func() {
					leader.Isolate(t)
					for _, f := range followers {
						if restarted {
							restarts.Go(func() { f.Restart(t) })
						}
					}
				})
				restarts.Wait()
				if !lost.Before(granted) {
					t.Errorf("lost %v after the next was granted", lost.Sub(granted))
				}
				t.Logf("lost %v before the next was granted", granted.Sub(lost).Round(time.Millisecond))
			}, zkenv.Breakable(), zkenv.Only("it takes a leader and its followers", zkenv.Ensemble))
		})
	}
}

// TestOnSuspend loses the lease when the connection breaks, and releases the lock as soon as there is
// a connection again.
func TestOnSuspend(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		holder, route := onRoute(t, env)
		patient := mustLock(t, newMutex(t, holder, path+"-patient"))
		lease := mustLock(t, k.lock(t, holder, path, recipes.WithLossPolicy(lease.OnSuspend)))
		next := env.Client(t)
		done := lockLater(t.Context(), k.rivalOf(t, next, path))
		env.Quiesce()
		route.Cut()
		must.Receive(t, lease.Lost(), "the loss by suspension")
		if err := lease.Err(); !errors.Is(err, errSuspended) {
			t.Errorf("lease: %v, want ErrSuspended", err)
		}
		after := granted(t, done, "the grant to the next")
		if err := patient.Err(); err != nil {
			t.Errorf("lease with the other policy: %v, want nil", err)
		}
		zktest.Eventually(t, generous, "the deletion is done", func() bool { return holder.PendingDeletes() == 0 })
		mustHold(t, next, after)
		mustRelease(t, after)
		mustRelease(t, patient)
	}, oneOfEach())
}

// TestLossBeforeSuccession_on_an_isolated_leader is TestLossBeforeSuccessionOnIsolatedLeader
// in virtual time, at moments that lie a quarter of a tick apart.
func TestLossBeforeSuccession_on_an_isolated_leader(t *testing.T) {
	t.Parallel()
	const leader = 2
	for phase := range 8 {
		synctest.Test(t, func(t *testing.T) {
			srv := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithFrontends(3), zkserver.WithLeader(leader), zkserver.WithTick(zktest.DefaultTickTime))...)
			client := func(i int, timeout time.Duration) *framework.Client {
				c := must.Get(framework.NewClient(srv.Frontend(i).Addr(), framework.WithDialer(srv.Dial),
					framework.WithSessionTimeout(timeout), framework.WithLeaseMargin(zktest.DefaultTickTime)))(t)
				must.OK(t, c.AwaitConnected(t.Context()))
				return c
			}
			holder, next := client(leader, sessionAtStake), client(0, 10*time.Second)
			defer next.Close()
			defer holder.Close()
			lost, granted := lossAndSuccession(t, holder, next, "/succession/leader", func() {
				<-time.After(time.Duration(phase) * zktest.DefaultTickTime / 4)
				srv.Frontend(leader).Isolate()
				srv.Elect() // as if the followers had been restarted
			})
			if !lost.Before(granted) {
				t.Errorf("phase %d: lost %v after the next was granted", phase, lost.Sub(granted))
			}
			t.Logf("phase %d: lost %v before the next was granted", phase, granted.Sub(lost))
			srv.Frontend(leader).Heal()
		})
	}
}

// TestLossBeforeSuccessionOnStalledWay stalls the route from the holder to its follower while a
// read and the heartbeat that is to prove it are sent. Both arrive together, and the follower is
// isolated before it reports the read to the leader. So the heartbeat's answer proves nothing
// of that read: the leader counts from what it learned before.
func TestLossBeforeSuccessionOnStalledWay(t *testing.T) {
	t.Parallel()
	const (
		timeout = 20 * time.Second
		stall   = framework.DefaultLeaseMargin*9/8 + 150*time.Millisecond // longer than the lead of the read
	)
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		follower := members[0]
		route := follower.Route(t)
		holder := route.Client(t, framework.WithSessionTimeout(timeout))
		next := members[len(members)-1].Client(t)
		lost, granted := lossAndSuccession(t, holder, next, anyPath("/succession/stall"), func() {
			<-time.After(timeout) // heartbeats keep their pace by then
			read := route.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldRequest})
			defer read.Release()
			must.Receive(t, read.Hit(), "the read ahead of a heartbeat")
			before := route.Count(fault.Multi)
			<-time.After(stall)
			synctest.Wait()
			read.Release()
			<-time.After(zkenv.Latency)
			synctest.Wait()
			follower.Isolate(t)
			if route.Count(fault.Multi) != before+1 {
				t.Errorf("%d heartbeats arrived together with the read, want 1", route.Count(fault.Multi)-before)
			}
		})
		if !lost.Before(granted) {
			t.Errorf("lost %v after the next was granted", lost.Sub(granted))
		}
		t.Logf("lost %v before the next was granted", granted.Sub(lost))
	}, zkenv.Breakable(), zkenv.Only("the follower has to be isolated between two of its reports", zkenv.EmbeddedEnsemble))
}
