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
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestOnSuspend loses the lease when the connection breaks, and releases the lock as soon as there is
// a connection again.
func TestOnSuspend(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, with(kinds, permits, candidate), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		holder, route := onRoute(t, env)
		patient := mustLock(t, newMutex(t, holder, path+"-patient"))
		lease := mustLock(t, k.lock(t, holder, path, recipes.WithLossPolicy(lease.OnSuspend)))
		next := env.Client(t)
		done := lockLater(t.Context(), k.rivalOf(t, next, path))
		env.Quiesce()
		route.Cut()
		must.Receive(t, lease.Lost(), "the loss by suspension")
		wantErr(t, "lease", lease.Err(), errSuspended)
		after := granted(t, done, "the grant to the next")
		wantErr(t, "lease with the other policy", patient.Err(), nil)
		zktest.Eventually(t, generous, "the deletion is done", func() bool { return holder.PendingDeletes() == 0 })
		mustHold(t, next, after)
		mustRelease(t, after)
		mustRelease(t, patient)
	}, oneOfEach())
}

// TestHarmAtTheGrant breaks the connection and waits until it is there again, or ends the session, in the function
// that is told of the grant: the attempt has made sure of both, and the lease is not watched yet.
func TestHarmAtTheGrant(t *testing.T) {
	t.Parallel()
	fair := kindsThat(func(k kind) bool { return k.fair && k.name != "multi" })
	for name, tt := range map[string]struct {
		of     []kind
		policy lease.LossPolicy
		harm   func(t *testing.T, srv *zkserver.Server, c *framework.Client)
		want   error
	}{
		"the connection breaks": {fair, lease.OnSuspend, func(t *testing.T, srv *zkserver.Server, c *framework.Client) {
			srv.Cut()
			synctest.Wait()
			wantErr(t, "reconnection", c.AwaitConnected(t.Context()), nil)
		}, errSuspended},
		"the session ends": {kindsThat(inQueue), lease.AtDeadline, func(t *testing.T, srv *zkserver.Server, c *framework.Client) {
			over := make(chan struct{})
			defer c.OnState(func(change framework.StateChange) {
				if change.To == framework.Lost {
					close(over)
				}
			})()
			wantErr(t, "expire", srv.Expire(c.Session().ID), nil)
			<-over
		}, framework.ErrSessionEnded},
	} {
		t.Run(name, func(t *testing.T) {
			eachKindInVirtualTime(t, tt.of, func(t *testing.T, k kind, srv *zkserver.Server) {
				c := virtualClient(t, srv)
				l := k.lock(t, c, "/harmed", recipes.WithLossPolicy(tt.policy), recipes.WithQueuePosition(func(ahead int) {
					if ahead == 0 {
						tt.harm(t, srv, c)
					}
				}))
				held := mustLock(t, l)
				wantErr(t, "the lease that is returned", held.Err(), tt.want)
				after := mustLock(t, newMutex(t, c, "/after", recipes.WithLossPolicy(tt.policy)))
				synctest.Wait()
				wantErr(t, "a lease that was granted later", after.Err(), nil)
			})
		})
	}
}

// If a broken connection costs the lock, it does so from the grant on. It does not begin only
// after the time that the lock's znode may be unwatched, and not when the first read of the znode has ended.
func TestABrokenConnectionCountsFromTheGrantOn(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]time.Duration{"unwatched": 0, "while the znode is read": 60 * time.Millisecond} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			read := srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/broken/*", Action: fault.HoldReply})
			lease := mustLock(t, newMutex(t, virtualClient(t, srv), "/broken", recipes.WithLossPolicy(lease.OnSuspend)))
			await(held)
			synctest.Wait()
			if err := lease.Err(); err != nil || (read.Hits() > 0) != (held > 0) {
				t.Fatalf("while the connection stands: %v, and %d reads", err, read.Hits())
			}
			srv.Refuse()
			srv.Cut()
			<-time.After(time.Millisecond)
			wantErr(t, "a moment after the connection broke", lease.Err(), errSuspended)
			srv.Accept()
		})
	}
}

// At the deadline every goroutine sees the loss, whether or not the deadline's own timer has run: a process
// that was stopped looks at its leases first.
func TestALeaseIsLostAtItsDeadlineWhoeverLooksFirst(t *testing.T) {
	t.Parallel()
	reenters := func(ctx context.Context, m *lock.Mutex) bool {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err := m.Lock(ctx)
		return err == nil
	}
	for name, held := range map[string]func(ctx context.Context, l *lock.Lease, m, same *lock.Mutex) bool{
		"Lease.Err":                         func(_ context.Context, l *lock.Lease, _, _ *lock.Mutex) bool { return l.Err() == nil },
		"a re-entry":                        func(ctx context.Context, _ *lock.Lease, m, _ *lock.Mutex) bool { return reenters(ctx, m) },
		"a re-entry of another Mutex value": func(ctx context.Context, _ *lock.Lease, _, same *lock.Mutex) bool { return reenters(ctx, same) },
	} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			const path = "/deadline/first"
			ctx := lock.ContextWithOwner(t.Context(), lock.NewOwner("first"))
			c := virtualClient(t, srv)
			m, same := newMutex(t, c, path), newMutex(t, c, path)
			l := must.Get(m.Lock(ctx))(t)
			srv.Refuse()
			srv.Cut()
			await(time.Until(l.Deadline()) - 2*time.Millisecond) // a re-entry may take one
			if !held(ctx, l, m, same) {
				t.Error("the lease is not held just before its deadline")
			}
			var looks sync.WaitGroup
			for range 200 {
				looks.Add(1)
				time.AfterFunc(time.Until(l.Deadline()), func() {
					defer looks.Done()
					if held(ctx, l, m, same) {
						t.Error("the lease was taken for held at its deadline")
					}
				})
			}
			looks.Wait()
		})
	}
}

// leaseOfEachKind returns a lease of each kind, by the kind's name.
func leaseOfEachKind(t *testing.T, c *framework.Client) map[string]*lock.Lease {
	t.Helper()
	leases := make(map[string]*lock.Lease)
	for _, k := range kinds {
		leases[k.name] = mustLock(t, k.lock(t, c, "/each/"+k.name))
	}
	return leases
}

// TestLeaseDeadline compares what leases of all makes say with the moment of their loss, whatever the policy by which
// the client tries to read their znodes again in the outage.
func TestLeaseDeadline(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]framework.Option{
		"the default policy":    nil,
		"an exponential policy": {framework.WithRetry(retry.Exponential(time.Second, 3)), framework.WithConnectTimeout(2 * time.Second)},
		"a pause of a minute":   {framework.WithRetry(retry.Forever(time.Minute))},
	} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			leases := leaseOfEachKind(t, virtualClient(t, srv, opts...))
			first := make(map[string]time.Time)
			for name, l := range leases {
				first[name] = l.Deadline()
			}
			await(time.Minute)
			for name, l := range leases {
				if d := l.Deadline(); !d.After(first[name]) || !d.After(time.Now()) {
					t.Errorf("%s: deadline %v a minute after %v, at %v", name, d, first[name], time.Now())
				}
			}
			srv.Refuse()
			srv.Cut()
			synctest.Wait() // a heartbeat's reply may have come at this moment
			deadlines := make(map[string]time.Time)
			for name, l := range leases {
				deadlines[name] = l.Deadline()
			}
			for name, l := range leases {
				<-l.Lost()
				if now := time.Now(); !now.Equal(deadlines[name]) {
					t.Errorf("%s: lost at %v, its deadline was %v", name, now, deadlines[name])
				}
			}
			srv.Accept()
		})
	}
}

// TestLostLeasesLeaveTheOwners never releases leases that were lost. Unlock reports the latest losses
// of a bounded number of owners.
func TestLostLeasesLeaveTheOwners(t *testing.T) {
	t.Parallel()
	const leases, remembered = 1100, 1000
	registered := func(k kind) bool { return k.name != "local" } // whose mutex has an owner of its own
	eachKindInVirtualTime(t, kindsThat(registered), func(t *testing.T, k kind, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		held := make([]*lock.Lease, leases)
		for i := range held {
			held[i] = mustLock(t, k.lock(t, c, fmt.Sprintf("/lost/%d", i)))
		}
		if n := lock.Registered(c); n == 0 && k.reentrant {
			t.Error("the registry is empty while the locks are held")
		}
		must.OK(t, srv.Expire(c.Session().ID))
		for _, lease := range held {
			must.Receive(t, lease.Lost(), "the loss")
		}
		synctest.Wait()
		want := 0
		if k.reentrant {
			want = remembered
		}
		if n := lock.Registered(c); n != want {
			t.Errorf("the owners refer to %d holds after %d losses, want %d", n, leases, want)
		}
	})
}

// TestInspectionsOfManyHoldsAreBounded breaks the connection of a client that holds many locks. The
// client reads all of its znodes again, at most 64 at a time. So the heartbeat that follows a
// reconnection does not wait behind thousands of reads.
func TestInspectionsOfManyHoldsAreBounded(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path, holds, bound = "/inspections", 150, 64
		proxy := behindPipe(t, srv)
		c := virtualClient(t, srv, framework.WithDialer(proxy.Dial))
		held := make([]*lock.Lease, holds)
		for i := range held {
			held[i] = mustLock(t, newMutex(t, c, fmt.Sprintf("%s/%d", path, i)))
		}
		zktest.Eventually(t, generous, "a watch on each znode", func() bool { return srv.Watches() == holds })
		reads := srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: path + "/**", Action: fault.HoldReply, Times: fault.Forever})
		proxy.ResetRequests()
		proxy.Cut()
		zktest.Eventually(t, generous, "the reads after the reconnection", func() bool { return reads.Hits() > 0 })
		synctest.Wait()
		if n := proxy.Count(fault.GetData); n != bound {
			t.Errorf("%d reads at one time, want %d", n, bound)
		}
		reads.Remove()
		reads.Release()
		zktest.Eventually(t, generous, "a watch on each znode again", func() bool { return srv.Watches() == holds })
		deleteNode(t, c, held[holds-1].Node())
		<-held[holds-1].Lost()
		for _, l := range held[:holds-1] {
			wantErr(t, l.Path(), l.Err(), nil)
		}
		if c.State() != framework.Connected {
			t.Errorf("state %v, want Connected", c.State())
		}
	})
}

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
