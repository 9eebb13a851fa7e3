package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// The tests of this file, and of peers_outage_test.go, are the scenarios of bugs that users of other lock
// libraries have reported; docs/peer-bugs.md lists all of them, with those that
// other files answer. Each runs for every kind of lock that it can concern.

// A kind makes a lock of one kind.
type kind struct {
	name   string
	create fault.Op // of its znodes, once it has been used
	make   func(c *framework.Client, path string) (lock.Locker, error)
}

// kinds are the locks that one owner at a time holds.
func kinds() []kind {
	return []kind{
		{"Mutex", fault.Create, func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewMutex(c, path) }},
		{"Write", fault.Create, func(c *framework.Client, path string) (lock.Locker, error) {
			rw, err := lock.NewRWMutex(c, path)
			if err != nil {
				return nil, err
			}
			return rw.Write(), nil
		}},
		{"SemaphoreMutex", fault.Create, func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewSemaphoreMutex(c, path) }},
		{"Exclusive", fault.Multi, func(c *framework.Client, path string) (lock.Locker, error) {
			return lock.NewUnfairMutex(c, path+"/lock")
		}},
	}
}

// A peerCase is one scenario at one path, with one kind of lock.
type peerCase struct {
	*testing.T
	server *zktest.Server
	path   string
	kind   kind
}

// locker returns the lock, for a client.
func (p *peerCase) locker(c *framework.Client) lock.Locker {
	p.Helper()
	l, err := p.kind.make(c, p.path)
	if err != nil {
		p.Fatal(err)
	}
	return l
}

// remove deletes the lock's directory, and before that the epoch, if there is one. A server
// refuses to delete a directory that is not empty.
func (p *peerCase) remove(ctx context.Context, c *framework.Client) {
	if p.kind.name == "Exclusive" {
		_ = c.Delete(ctx, framework.EpochOf(p.path+"/lock"))
	}
	_ = c.Delete(ctx, p.path)
}

// left returns the ephemeral znodes below the lock's path.
func (p *peerCase) left(c *framework.Client) []string {
	p.Helper()
	if err := c.Sync(p.Context(), "/"); err != nil {
		p.Fatal(err)
	}
	var found []string
	var walk func(path string)
	walk = func(path string) {
		st, ok, err := c.Exists(p.Context(), path)
		if err != nil || !ok {
			return
		}
		if st.EphemeralOwner != 0 {
			found = append(found, path)
		}
		names, _, err := c.Children(p.Context(), path)
		if err != nil {
			return
		}
		for _, name := range names {
			walk(framework.JoinPath(path, name))
		}
	}
	walk(p.path)
	return found
}

func (p *peerCase) awaitLeft(c *framework.Client, n int) {
	p.Helper()
	zktest.Eventually(p, generous, fmt.Sprintf("%d znodes stand", n), func() bool { return len(p.left(c)) == n })
}

// peer runs a scenario for every kind that it can concern, in parallel.
func peer(t *testing.T, threads string, scenario func(p *peerCase), but ...string) {
	t.Helper()
	t.Parallel()
	server := zktest.Shared(t)
	for _, k := range kinds() {
		if slices.Contains(but, k.name) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			t.Log("answers", threads)
			path := anyPath("/peers/" + strings.NewReplacer("/", "-", "#", "-").Replace(t.Name()))
			scenario(&peerCase{t, server, path, k})
		})
	}
}

func TestPeerWriteUnderALostLock(t *testing.T) {
	peer(t, "vespa-engine/vespa#3340, etcd-io/etcd#10811", func(p *peerCase) {
		c, proxy := behindProxy(p, p.server)
		guarded, err := c.Create(p.Context(), p.path+"-data", []byte("0"), framework.WithParents(), framework.Sequential())
		if err != nil {
			p.Fatal(err)
		}
		lease := mustLock(p, p.locker(c))
		expire(p, p.server, proxy, c)
		_, err = c.Txn(p.Context(), lease.Guard(), framework.OpSet(guarded, []byte("late"), framework.AnyVersion))
		if !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrUnknownOutcome) {
			p.Errorf("guarded write after the loss: %v, want ErrNoNode", err)
		}
		if data, st, err := c.Get(p.Context(), guarded); err != nil || st.Version != 0 {
			p.Errorf("data %q at version %d (%v), want it unchanged", data, st.Version, err)
		}
	})
}

func TestPeerCancelAtAnyMoment(t *testing.T) {
	peer(t, "vitessio/vitess#8309, etcd-io/etcd#10111, apache/curator#726", func(p *peerCase) {
		c := newClient(p, p.server.Addr())
		other := newClient(p, p.server.Addr())
		var wg sync.WaitGroup
		for g, client := range []*framework.Client{c, other} {
			wg.Go(func() {
				l := p.locker(client)
				random := rand.New(rand.NewPCG(7, uint64(g)))
				for range 150 {
					ctx, cancel := context.WithTimeout(p.Context(), time.Duration(random.IntN(4000))*time.Microsecond)
					lease, err := l.Lock(ctx)
					switch {
					case (lease == nil) == (err == nil):
						p.Errorf("Lock: %v, %v; want exactly one", lease, err)
					case err == nil:
						mustRelease(p, lease)
					case !errors.Is(err, context.DeadlineExceeded):
						p.Errorf("Lock: %v, want an error that matches DeadlineExceeded", err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		p.awaitLeft(c, 0)
	})
}

func TestPeerLostNodeIsNotMadeAgain(t *testing.T) {
	peer(t, "swarthy/redis-semaphore#175, hashicorp/consul#2371, apache/curator#692", func(p *peerCase) {
		c := newClient(p, p.server.Addr())
		l := p.locker(c)
		lease := mustLock(p, l)
		if err := newClient(p, p.server.Addr()).Delete(p.Context(), lease.Node()); err != nil {
			p.Fatal(err)
		}
		receive(p, lease.Lost(), "the loss")
		p.awaitLeft(c, 0)
		again := mustLock(p, l) // the object is of use at once
		mustRelease(p, again)
		p.awaitLeft(c, 0)
	})
}

func TestPeerParentsVanishUnderContention(t *testing.T) {
	peer(t, "apache/curator#701, python-zk/kazoo#61, python-zk/kazoo#563, Netflix/curator#307", func(p *peerCase) {
		operator := newClient(p, p.server.Addr())
		ctx, cancel := context.WithCancel(p.Context())
		var removing, working sync.WaitGroup
		removing.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				p.remove(ctx, operator) // mostly refused: somebody is in there
				<-tick.C
			}
		})
		for range 4 {
			l := p.locker(newClient(p, p.server.Addr()))
			working.Go(func() {
				for range 25 {
					lease, err := l.Lock(p.Context())
					if err != nil {
						p.Error(err)
						return
					}
					if err := lease.Release(p.Context()); err != nil {
						p.Error(err)
					}
				}
			})
		}
		working.Wait()
		cancel()
		removing.Wait()
		if p.kind.name == "Exclusive" {
			p.remove(p.Context(), operator) // no server does, because of the epoch
		}
		zktest.Eventually(p, generous, "the idle directory is reaped", func() bool {
			_, ok, err := operator.Exists(p.Context(), p.path)
			return err == nil && !ok
		})
	})
}

func TestPeerDeadlineCoversTheWholeAcquire(t *testing.T) {
	peer(t, "spring-projects/spring-integration#1863, spring-projects/spring-integration#11244, apache/curator#1116, hashicorp/consul#4346", func(p *peerCase) {
		c, proxy := behindProxy(p, p.server)
		l := p.locker(c)
		mustRelease(p, mustLock(p, l))
		proxy.Blackhole(zkproxy.Both)
		start := time.Now()
		ctx, cancel := context.WithTimeout(p.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := l.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			p.Errorf("Lock in silence: %v, want DeadlineExceeded", err)
		}
		if took := time.Since(start); took < 300*time.Millisecond || took > 5*time.Second {
			p.Errorf("a deadline of 300ms took %v", took)
		}
		proxy.Heal()
		p.awaitLeft(c, 0)
	})
}

func TestPeerNoWakeUpIsLost(t *testing.T) {
	peer(t, "apache/curator#1046, apache/curator#1157, redisson/redisson#3891", func(p *peerCase) {
		a, b := p.locker(newClient(p, p.server.Addr())), p.locker(newClient(p, p.server.Addr()))
		random := rand.New(rand.NewPCG(11, 13))
		for range 200 {
			held := mustLock(p, a)
			done := lockLater(p.Context(), b)
			pause := time.NewTimer(time.Duration(random.IntN(1500)) * time.Microsecond)
			<-pause.C
			mustRelease(p, held)
			got := receive(p, done, "the lock after the release")
			if got.err != nil {
				p.Fatal(got.err)
			}
			mustRelease(p, got.lease)
		}
	})
}

func TestPeerClosedClient(t *testing.T) {
	peer(t, "python-zk/kazoo#482, python-zk/kazoo#83, samuel/go-zookeeper#211", func(p *peerCase) {
		c, err := framework.NewClient(p.server.Addr())
		if err != nil {
			p.Fatal(err)
		}
		l := p.locker(c)
		if err := c.Close(); err != nil {
			p.Fatal(err)
		}
		for name, call := range map[string]func(context.Context) (*lock.Lease, error){"Lock": l.Lock, "TryLock": l.TryLock} {
			if _, err := call(p.Context()); !errors.Is(err, framework.ErrClosed) {
				p.Errorf("%s: %v, want ErrClosed", name, err)
			}
		}
	})
}

func TestPeerTryIsOneFullAttempt(t *testing.T) {
	peer(t, "redisson/redisson#4033", func(p *peerCase) {
		l := p.locker(newClient(p, p.server.Addr()))
		for range 20 {
			lease, err := l.TryLock(p.Context())
			if err != nil {
				p.Fatalf("TryLock of a free lock: %v", err)
			}
			mustRelease(p, lease)
		}
	})
}

func TestPeerAbandonedWaitsLeaveNoWatches(t *testing.T) {
	peer(t, "samuel/go-zookeeper#110, zalando/nakadi#1263, apache/curator#1225", func(p *peerCase) {
		held := mustLock(p, p.locker(newClient(p, p.server.Addr())))
		c, proxy := behindProxy(p, p.server)
		l := p.locker(c)
		const waits = 50
		for range waits {
			proxy.ResetRequests()
			ctx, cancel := context.WithCancel(p.Context())
			done := lockLater(ctx, l)
			zktest.Eventually(p, generous, "it reads the holder's znode", func() bool { return proxy.Count(fault.GetData) > 0 })
			cancel()
			if got := receive(p, done, "the end of the wait"); got.err == nil {
				p.Error("granted beside the holder")
			}
		}
		// Each watched path is followed by the sessions that watch it.
		report, err := p.server.FourLetter(p.Context(), "wchp")
		if err != nil {
			p.Fatal(err)
		}
		_, watchers, _ := strings.Cut(report, held.Node()+"\n")
		watchers, _, _ = strings.Cut(watchers, "\n/")
		if n := strings.Count(watchers, fmt.Sprintf("%#x", c.Session().ID)); n != 1 {
			p.Errorf("%d watches on the holder's znode after %d abandoned waits, want 1\n%s", n, waits, report)
		}
		mustRelease(p, held)
	}, "SemaphoreMutex") // whose waiters watch all leases at once, by one watch
}

func TestPeerCallsFromAStateListener(t *testing.T) {
	peer(t, "python-zk/kazoo#356, python-zk/kazoo#381, apache/curator#283, apache/curator#693", func(p *peerCase) {
		c, proxy := behindProxy(p, p.server)
		l := p.locker(c)
		results := make(chan error, 16)
		remove := c.OnState(func(change framework.StateChange) {
			if change.To != framework.Connected {
				return
			}
			results <- lock.Do(p.Context(), l, func(context.Context, *lock.Lease) error { return nil })
		})
		defer remove()
		var got []error
		got = append(got, receive(p, results, "the lock in the first call"))
		proxy.Cut()
		got = append(got, receive(p, results, "the lock in the second call"))
		if i := slices.IndexFunc(got, func(err error) bool { return err != nil }); i >= 0 {
			p.Errorf("call %d: %v", i, got[i])
		}
	})
}
