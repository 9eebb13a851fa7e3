package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zktest"
)

// The tests of this file are scenarios of bugs that users of other
// lock libraries have reported. lab/interop/peer-bugs.md lists all of them, with those that other files
// answer. Each runs for every kind of lock that it can concern.

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
	return p.kind.lock(p, c, p.path)
}

// remove deletes the lock's directory, and before that the epoch, if there is one. A server
// refuses to delete a directory that is not empty.
func (p *peerCase) remove(ctx context.Context, c *framework.Client) {
	if p.kind.name == "unfair mutex" {
		_ = c.Delete(ctx, zkpath.Epoch(p.path+"/lock"))
	}
	_ = c.Delete(ctx, p.path)
}

func (p *peerCase) awaitLeft(c *framework.Client, n int) {
	p.Helper()
	awaitEphemerals(p, c, p.path, n)
}

// peer runs a scenario for every kind that it can concern, in parallel.
func peer(t *testing.T, threads string, scenario func(p *peerCase), but ...string) {
	t.Helper()
	t.Parallel()
	server := zktest.Shared(t)
	concerned := kindsThat(kind.exclusive, func(k kind) bool { return !slices.Contains(append(but, "local", "multi"), k.name) })
	eachKind(t, concerned, func(t *testing.T, k kind) {
		t.Log("answers", threads)
		scenario(&peerCase{t, server, anyPath("/" + t.Name()), k})
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
				p.remove(ctx, operator) // mostly refused, because the lock has contenders
				<-tick.C
			}
		})
		for range 4 {
			l := p.locker(newClient(p, p.server.Addr()))
			working.Go(func() {
				for range 25 {
					wantErr(p, "Do", lock.Do(p.Context(), l, func(context.Context, *lock.Lease) error { return nil }), nil)
				}
			})
		}
		working.Wait()
		cancel()
		removing.Wait()
		if p.kind.name == "unfair mutex" {
			p.remove(p.Context(), operator) // no server does, because of the epoch
		}
		zktest.Eventually(p, generous, "the idle directory is reaped", func() bool {
			_, ok, err := operator.Exists(p.Context(), p.path)
			return err == nil && !ok
		})
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
			if got := must.Receive(p, done, "the end of the wait"); got.Err == nil {
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
	}, "semaphore mutex") // whose waiters watch all leases at once, by one watch
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
		got = append(got, must.Receive(p, results, "the lock in the first call"))
		proxy.Cut()
		got = append(got, must.Receive(p, results, "the lock in the second call"))
		if i := slices.IndexFunc(got, func(err error) bool { return err != nil }); i >= 0 {
			p.Errorf("call %d: %v", i, got[i])
		}
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
			mustBeHeld(p.Context(), p, l)
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
