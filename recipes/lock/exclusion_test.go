package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestContentionUnderFaults has owners of two clients contend for one lock, so that many wait in
// one session, and some withdraw. Meanwhile connections are cut, sessions end and an operator
// deletes the znodes of waiters.
func TestContentionUnderFaults(t *testing.T) {
	t.Parallel()
	const path = "/interleaved/crowd"
	ofOneZnode := kindsThat(kind.exclusive, func(k kind) bool { return k.name != "local" && k.name != "multi" })
	for _, k := range ofOneZnode {
		t.Run(k.name, func(t *testing.T) {
			for seed := range uint64(4) {
				synctest.Test(t, func(t *testing.T) {
					srv := virtualServer(t)
					w := &contention{t: t, srv: srv, path: path, held: make(map[*lock.Lease]bool), doomed: make(map[string]bool)}
					for range 2 {
						s := newService("crowd", func(opts ...framework.Option) *framework.Client { return virtualClient(t, srv, opts...) })
						w.services = append(w.services, s)
					}
					w.live(rand.New(rand.NewPCG(seed, 7)), k)
					if t.Failed() {
						t.Fatal("seed ", seed)
					}
				})
			}
		})
	}
}

// A contention is the owners of one lock, and what they share. The counter that the lock guards has no other
// guard, so that the race detector sees two holders at once.
type contention struct {
	t        *testing.T
	srv      *zkserver.Server
	path     string
	services []*service

	mu      sync.Mutex
	held    map[*lock.Lease]bool
	doomed  map[string]bool // znodes that an operator deletes: their owners may have come to hold the lock by then
	granted int
}

func (w *contention) live(r *rand.Rand, k kind) {
	var owners sync.WaitGroup
	for i := range 12 {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		l := k.lock(w.t, w.services[i%2].client, w.path)
		owners.Go(func() {
			for range 8 {
				w.contend(own, l)
			}
		})
	}
	over := make(chan struct{})
	troubled := make(chan struct{})
	go func() {
		defer close(troubled)
		for range 25 {
			await(time.Duration(r.IntN(400)) * time.Millisecond)
			w.trouble(r)
		}
	}()
	go func() { owners.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(time.Hour):
		w.t.Fatalf("somebody waits for ever; %d grants", w.granted)
	}
	<-troubled
	await(time.Minute)
	synctest.Wait()
	for _, s := range w.srv.Sessions() {
		if len(s.Ephemerals) > 0 {
			w.t.Errorf("left: %q", s.Ephemerals)
		}
	}
	for _, s := range w.services {
		if left := s.present(w.t); left != nil {
			w.t.Errorf("when all is over: %v", left)
		}
	}
	if w.granted < 30 {
		w.t.Errorf("only %d grants", w.granted)
	}
}

func (w *contention) contend(r *rand.Rand, l lock.Locker) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.IntN(3) == 0 {
		timer := time.AfterFunc(time.Duration(r.IntN(1000))*time.Millisecond, cancel)
		defer timer.Stop()
	}
	lease, err := l.Lock(ctx)
	if err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, framework.ErrNotConnected) && !errors.Is(err, framework.ErrUnknownOutcome) {
			w.t.Error(err)
		}
		return
	}
	w.mu.Lock()
	w.granted++
	for other := range w.held {
		if !closed(other.Lost()) && !closed(lease.Lost()) && !w.doomed[other.Node()] && !w.doomed[lease.Node()] {
			w.t.Errorf("granted by %s while %s is held", lease.Node(), other.Node())
		}
	}
	w.held[lease] = true
	w.mu.Unlock()
	await(time.Duration(r.IntN(100)) * time.Millisecond)
	w.mu.Lock()
	delete(w.held, lease)
	w.mu.Unlock()
	_ = lease.Release(context.Background()) // it may have been lost
}

func (w *contention) trouble(r *rand.Rand) {
	switch r.IntN(6) {
	case 0:
		w.srv.Cut()
	case 1:
		w.srv.Elect()
	default:
		w.deleteWaiter(r)
	}
}

// deleteWaiter deletes the znode of a waiter.
func (w *contention) deleteWaiter(r *rand.Rand) {
	operator := virtualClient(w.t, w.srv)
	defer operator.Close() // at once: there is one for each act
	for _, dir := range []string{w.path, w.path + "/locks"} {
		names, _, err := operator.Children(w.t.Context(), dir)
		if err != nil {
			continue
		}
		names = slices.DeleteFunc(names, func(name string) bool { return len(name) < 10 })
		slices.SortFunc(names, bySequence)
		if len(names) < 2 {
			continue
		}
		victim := zkpath.Join(dir, names[1+r.IntN(len(names)-1)])
		w.mu.Lock()
		w.doomed[victim] = true
		w.mu.Unlock()
		err = operator.Delete(w.t.Context(), victim)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			w.t.Error(fmt.Errorf("operator: %w", err))
		}
	}
}

// TestWipedServer_is_listed replaces the server by an empty one, as one that
// keeps its data in memory when it starts again: it counts its transactions from the
// beginning, so the number that a mutex remembers means another one there.
func TestWipedServer_is_listed(t *testing.T) {
	t.Parallel()
	for prior := range 4 {
		synctest.Test(t, func(t *testing.T) {
			const path = "/anew"
			var serves atomic.Pointer[zkserver.Server]
			before := virtualServer(t)
			serves.Store(before)
			c := newClient(t, before.Addr(), framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				return serves.Load().Dial(ctx, network, address)
			}))
			must.Get(c.Create(t.Context(), path, nil))(t)
			for range prior {
				must.Get(c.Set(t.Context(), path, nil, framework.AnyVersion))(t)
			}
			m := newMutex(t, c, path)
			mustRelease(t, mustLock(t, m))

			renewed := make(chan struct{})
			defer c.OnState(func(change framework.StateChange) {
				if change.From == framework.Lost && change.To == framework.Connected {
					close(renewed)
				}
			})()
			await(time.Second) // a server numbers its sessions from the time of its start on
			after := virtualServer(t)
			serves.Store(after)
			before.Cut()
			<-renewed
			other := virtualClient(t, after)
			held := mustLock(t, newMutex(t, other, path))
			done := lockLater(t.Context(), m)
			synctest.Wait()
			mustWaitStill(t, fmt.Sprintf("beside a holder, %d writes after the creation", prior), done)
			mustRelease(t, held)
			mustRelease(t, granted(t, done, "the grant"))
		})
	}
}
