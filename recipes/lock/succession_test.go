package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// sessionAtStake is the session timeout of the tests that lose sessions.
const sessionAtStake = 4 * time.Second

// lossAndSuccession lets holder have the mutex at path and next wait for it, and calls cutOff. It
// checks that the holder learned of its loss before next was granted, both seen from outside ZooKeeper.
func lossAndSuccession(t testing.TB, holder, next *framework.Client, path string, cutOff func()) {
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
	lost := must.Receive(t, observed, "the loss of the lease")
	if lease.Err() == nil {
		t.Error("Lost is closed and Err is nil")
	}
	got := must.Receive(t, done, "the grant to the next")
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	before := lease.Fence()
	if after := got.Lease.Fence(); after <= before {
		t.Errorf("fence %d after %d: must grow", after, before)
	}
	mustRelease(t, got.Lease)
	if !lost.Before(got.At) {
		t.Errorf("lost %v after the next was granted", lost.Sub(got.At))
	}
	t.Logf("lost %v before the next was granted", got.At.Sub(lost).Round(time.Millisecond))
}

// TestLossBeforeSuccessionOnFrozenServer stops the holder's server for longer than
// the session lasts. Where it is the only one it expires the session when it goes on.
func TestLossBeforeSuccessionOnFrozenServer(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		server := members[0]
		holder := server.Route(t).Client(t, framework.WithSessionTimeout(sessionAtStake))
		next := members[len(members)-1].Client(t, framework.WithSessionTimeout(20*time.Second))
		lossAndSuccession(t, holder, next, "/succession/frozen", func() {
			server.Freeze(t)
			thaw := time.AfterFunc(sessionAtStake+time.Second, func() { server.Thaw(t) })
			t.Cleanup(func() { thaw.Stop() })
		})
	}, zkenv.Breakable())
}

// TestLossBeforeSuccessionOnIsolatedFollower cuts the holder's server off from
// its leader: it goes on answering reads and pings, which prove nothing.
func TestLossBeforeSuccessionOnIsolatedFollower(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		follower := members[0]
		holder := follower.Route(t).Client(t, framework.WithSessionTimeout(sessionAtStake))
		next := members[len(members)-1].Client(t)
		lossAndSuccession(t, holder, next, "/succession/follower", func() { follower.Isolate(t) })
	}, zkenv.Breakable(), zkenv.Only("it takes a follower and its leader", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
}

// TestLossBeforeSuccessionOnIsolatedLeader cuts the holder's server, the leader, off from
// both followers. The followers elect a new leader. If they are killed and started again,
// they do so seconds before the old leader notices that it has lost its followers. Until
// then the old leader answers pings, reads, syncs and handshakes.
func TestLossBeforeSuccessionOnIsolatedLeader(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"followers go on": false, "followers restart": true} {
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
			members := env.Members()
			followers, leader := members[:len(members)-1], members[len(members)-1]
			holder := leader.Route(t).Client(t, framework.WithSessionTimeout(sessionAtStake),
				framework.WithLeaseMargin(zktest.DefaultTickTime))
			next := followers[0].Client(t, framework.WithSessionTimeout(20*time.Second))
			var restarts sync.WaitGroup
			lossAndSuccession(t, holder, next, "/succession/leader", func() {
				leader.Isolate(t)
				for _, f := range followers {
					if restarted {
						restarts.Go(func() { f.Restart(t) })
					}
				}
			})
			restarts.Wait()
		}, zkenv.Breakable(), zkenv.Only("it takes a leader and its followers", zkenv.Ensemble))
	}
}

// TestLossBeforeSuccession_at_all_phases is the two tests above in virtual time, at moments that lie a
// quarter of a tick apart.
func TestLossBeforeSuccession_at_all_phases(t *testing.T) {
	t.Parallel()
	for phase := range 8 {
		t.Run(fmt.Sprintf("leader %d", phase), func(t *testing.T) { lossAtPhase(t, 2, phase) })
		t.Run(fmt.Sprintf("follower %d", phase), func(t *testing.T) { lossAtPhase(t, 1, phase) })
	}
}

// lossAtPhase isolates the holder's member, after some quarters of a tick.
func lossAtPhase(t *testing.T, member, phase int) {
	t.Helper()
	const leader = 2
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithFrontends(3), zkserver.WithLeader(leader), zkserver.WithTick(zktest.DefaultTickTime))...)
		client := func(i int, timeout time.Duration) *framework.Client {
			c := must.Get(framework.NewClient(srv.Frontend(i).Addr(), framework.WithDialer(srv.Dial),
				framework.WithSessionTimeout(timeout), framework.WithLeaseMargin(zktest.DefaultTickTime)))(t)
			must.OK(t, c.AwaitConnected(t.Context()))
			return c
		}
		holder, next := client(member, sessionAtStake), client(0, 10*time.Second)
		defer next.Close()
		defer holder.Close()
		lossAndSuccession(t, holder, next, "/succession/leader", func() {
			<-time.After(time.Duration(phase) * zktest.DefaultTickTime / 4)
			srv.Frontend(member).Isolate()
			if member == leader {
				srv.Elect() // as if the followers had been restarted
			}
		})
		srv.Frontend(member).Heal()
	})
}

// TestLossBeforeSuccessionOnStalledRoute stalls the route from the holder to its follower while a
// read and the heartbeat that is to prove it are sent. Both arrive together, and the follower is
// isolated before it reports the read to the leader. So the heartbeat's answer proves nothing
// of that read: the leader counts from what it learned before.
func TestLossBeforeSuccessionOnStalledRoute(t *testing.T) {
	t.Parallel()
	const timeout = 20 * time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		follower := members[0]
		route := follower.Route(t)
		holder := route.Client(t, framework.WithSessionTimeout(timeout))
		next := members[len(members)-1].Client(t)
		lossAndSuccession(t, holder, next, anyPath("/succession/stall"), func() {
			<-time.After(timeout) // heartbeats keep their pace by then
			read := route.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldRequest})
			defer read.Release()
			must.Receive(t, read.Hit(), "the read ahead of a heartbeat")
			before := route.Count(fault.Multi)
			<-time.After(holder.Session().Margin*9/8 + 150*time.Millisecond) // longer than the lead of the read
			synctest.Wait()
			read.Release()
			<-time.After(zkenv.Latency)
			synctest.Wait()
			follower.Isolate(t)
			if route.Count(fault.Multi) != before+1 {
				t.Errorf("%d heartbeats arrived together with the read, want 1", route.Count(fault.Multi)-before)
			}
		})
	}, zkenv.Breakable(), zkenv.Only("the follower has to be isolated between two of its reports", zkenv.EmbeddedEnsemble))
}

// A holder that abandons its session by its own clock is back, in a new session, as soon as the
// network is. No client waits for the server to expire the old session.
func TestAbandonedSessionDelaysNoClient(t *testing.T) {
	t.Parallel()
	for name, itself := range map[string]bool{"another client": false, "the holder's own next attempt": true} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			const path = "/given-up"
			proxy := behindPipe(t, srv)
			holder := virtualClient(t, srv, framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(6*time.Second))
			next := holder
			if !itself {
				next = virtualClient(t, srv)
			}
			lease := mustLock(t, newMutex(t, holder, path))
			var lost time.Time
			ended, cancel := lease.Context(t.Context())
			defer cancel()
			context.AfterFunc(ended, func() { lost = time.Now() })

			proxy.Blackhole(zkproxy.Both)
			must.Receive(t, lease.Lost(), "the loss")
			synctest.Wait()
			proxy.Heal()
			healed := time.Now()
			got := must.Receive(t, lockLater(t.Context(), newMutex(t, next, path)), "the grant to the next")
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			const margin = 2 * time.Second // a third of the session timeout
			if took := got.At.Sub(healed); took > margin+time.Second {
				t.Errorf("granted %v after the network was back", took)
			}
			if lost.IsZero() || got.At.Sub(lost) < margin {
				t.Errorf("told of the loss at %v, the next was granted at %v: want the lease margin of %v between them", lost, got.At, margin)
			}
			mustRelease(t, got.Lease)
			_ = lease.Release(t.Context()) // lost long ago
		})
	}
}

// TestNoLeaseIsHeldWhileItsClientCloses withholds the request that ends the session, and asks the
// leases of all kinds meanwhile.
func TestNoLeaseIsHeldWhileItsClientCloses(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		leases := leaseOfEachKind(t, c)
		ends := make(map[string]<-chan struct{})
		for name, l := range leases {
			ctx, cancel := l.Context(t.Context())
			defer cancel()
			ends[name] = ctx.Done()
		}
		held := srv.Rules().Add(fault.Rule{Op: fault.CloseSession, Action: fault.HoldRequest})
		closing := later(c.Close)
		<-held.Hit()
		for name, l := range leases {
			wantErr(t, name, l.Err(), framework.ErrClosed)
			for what, done := range map[string]<-chan struct{}{"Lost": l.Lost(), "a context": ends[name]} {
				if !closed(done) {
					t.Errorf("%s: %s has not ended while the client closes", name, what)
				}
			}
		}
		held.Release()
		must.OK(t, <-closing)
	})
}
