package lock_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
)

func TestPeerSessionIsSubstituted(t *testing.T) {
	peer(t, "ClickHouse/ClickHouse#116690", func(p *peerCase) {
		c, proxy := behindProxy(p, p.server)
		lease := mustLock(p, p.locker(c))
		proxy.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		proxy.Cut()
		must.Receive(p, lease.Lost(), "the loss by another session")
		if err := lease.Err(); !errors.Is(err, framework.ErrSessionReplaced) {
			p.Errorf("lease: %v, want ErrSessionReplaced", err)
		}
	})
}

func TestPeerShortOutageKeepsTheLock(t *testing.T) {
	peer(t, "apache/curator#655, redisson/redisson#3636", func(p *peerCase) {
		c, proxy := behindProxy(p, p.server)
		lease := mustLock(p, p.locker(c))
		before := c.Session().ID
		for range 3 {
			proxy.Cut()
			if err := c.AwaitConnected(p.Context()); err != nil {
				p.Fatal(err)
			}
		}
		if _, err := newMutex(p, c, p.path+"-other").TryLock(p.Context()); err != nil {
			p.Error(err)
		}
		if now := c.Session().ID; now != before || lease.Err() != nil {
			p.Errorf("session %#x, lease %v after outages; want %#x and nil", now, lease.Err(), before)
		}
		mustRelease(p, lease)
	})
}

func TestPeerRefusedTriesUnderAFlakyNetwork(t *testing.T) {
	peer(t, "python-zk/kazoo#732, python-zk/kazoo#429, spring-projects/spring-integration#2557", func(p *peerCase) {
		observer := newClient(p, p.server.Addr())
		held := mustLock(p, p.locker(observer))
		c, proxy := behindProxy(p, p.server)
		l := p.locker(c)
		for i := range 100 {
			if i%12 == 0 {
				proxy.Cut()
			}
			if lease, err := l.TryLock(p.Context()); lease != nil || !errors.Is(err, lock.ErrHeld) {
				p.Errorf("TryLock: %v, %v; want ErrHeld", lease, err)
			}
		}
		p.awaitLeft(observer, 1)
		mustRelease(p, held)
		p.awaitLeft(observer, 0)
	})
}

func TestPeerOneRetryLayer(t *testing.T) {
	peer(t, "apache/curator#1078", func(p *peerCase) {
		const retries = 3
		c, proxy := behindProxy(p, p.server, framework.WithRetry(retry.Times(retries, time.Millisecond)))
		fails := proxy.Rules().Add(fault.Rule{Op: p.kind.create, Path: p.path + "/**", Action: fault.CutBefore, Times: fault.Forever})
		_, err := p.locker(c).Lock(p.Context())
		var exhausted *retry.ExhaustedError
		if !errors.As(err, &exhausted) || exhausted.Attempts != retries+1 {
			p.Errorf("Lock: %v, want an ExhaustedError after %d attempts", err, retries+1)
		}
		if n := fails.Hits(); n > retries+1 {
			p.Errorf("%d creates, want at most %d", n, retries+1)
		}
		fails.Remove()
		p.awaitLeft(c, 0)
	})
}

func TestPeerRetry_wakes_at_reconnection(t *testing.T) {
	peer(t, "apache/curator#585, apache/curator#705, apache/curator#854", func(p *peerCase) {
		c, proxy := behindProxy(p, p.server, framework.WithRetry(retry.Times(3, time.Hour)))
		l := p.locker(c)
		cut := proxy.Rules().Add(fault.Rule{Op: p.kind.create, Path: p.path + "/**", Action: fault.CutBefore})
		mustRelease(p, mustLock(p, l)) // within an hour
		if cut.Hits() != 1 {
			p.Error("the create was not cut")
		}
		expire(p, p.server, proxy, c)
		mustRelease(p, mustLock(p, l))
	})
}

func TestPeerContendersSurviveReconnections(t *testing.T) {
	peer(t, "python-zk/kazoo#282, python-zk/kazoo#577, apache/dolphinscheduler#2020, zk-ruby/zk#51", func(p *peerCase) {
		observer := newClient(p, p.server.Addr())
		inside := make(chan struct{}, 1)
		var working sync.WaitGroup
		proxies := make([]*zkproxy.Proxy, 3)
		cut := make(chan struct{}, 1) // at every 24th grant: a slow machine is cut no more often than a fast one
		var grants atomic.Int64
		done := make(chan struct{})
		for i := range proxies {
			var c *framework.Client
			c, proxies[i] = behindProxy(p, p.server)
			l := p.locker(c)
			working.Go(func() {
				for range 200 {
					lease, err := l.Lock(p.Context())
					if err != nil {
						p.Error(err)
						return
					}
					select {
					case inside <- struct{}{}:
						<-inside
					default:
						p.Error("two holders at once")
					}
					if grants.Add(1)%24 == 0 {
						select {
						case cut <- struct{}{}:
						default:
						}
					}
					if err := lease.Release(p.Context()); err != nil {
						p.Error(err)
					}
				}
			})
		}
		go func() { working.Wait(); close(done) }()
		cuts := 0
		for ; ; cuts++ {
			select {
			case <-done:
				if cuts < 15 {
					p.Errorf("%d cuts, want at least 15", cuts)
				}
				p.awaitLeft(observer, 0)
				return
			case <-cut:
				proxies[cuts%len(proxies)].Cut()
			}
		}
	})
}
