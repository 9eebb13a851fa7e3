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
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// visits are of what one lock guards. The counter shared has no other guard, so that the race
// detector sees two holders at once.
type visits struct {
	t       *testing.T
	kind    kind
	holders chan struct{} // full while a holder is in
	shared  int
	fence   int64
}

func newVisits(t *testing.T, k kind) *visits {
	t.Helper()
	return &visits{t: t, kind: k, holders: make(chan struct{}, 1)}
}

// visit checks that no other holder is in, and that the fence grows.
func (v *visits) visit(lease *lock.Lease) {
	select {
	case v.holders <- struct{}{}:
	default:
		v.t.Error("two holders at once")
		return
	}
	v.shared++
	fence := firstOf(lease).Fence()
	if fence < v.fence || fence == v.fence && v.kind.name != "local" { // which hands one grant on
		v.t.Errorf("fence %d after %d: must grow", fence, v.fence)
	}
	v.fence = fence
	<-v.holders
}

func TestExclusion(t *testing.T) {
	t.Parallel()
	const clients, goroutines, rounds = 3, 16, 5
	eachKindAndEnv(t, kindsThat(kind.exclusive), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		var wg sync.WaitGroup
		guarded := newVisits(t, k)
		for range clients {
			l := k.lock(t, env.Client(t), path)
			for range goroutines {
				wg.Go(func() {
					for range rounds {
						err := lock.Do(context.Background(), l, func(_ context.Context, lease *lock.Lease) error {
							guarded.visit(lease)
							return nil
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		if want := clients * goroutines * rounds; guarded.shared != want {
			t.Errorf("%d visits, want %d", guarded.shared, want)
		}
	})
}

// TestTryLockExclusion has contenders that never wait. The lock is free in the end.
func TestTryLockExclusion(t *testing.T) {
	t.Parallel()
	const contenders, tries = 6, 30
	eachKindAndEnv(t, kindsThat(kind.exclusive), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		observer := env.Client(t)
		var wg sync.WaitGroup
		guarded := newVisits(t, k)
		for i := range contenders {
			c := observer
			if i%2 == 0 {
				c = env.Client(t)
			}
			l := k.lock(t, c, path)
			wg.Go(func() {
				for range tries {
					lease, err := l.TryLock(t.Context())
					if errors.Is(err, lock.ErrHeld) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					guarded.visit(lease)
					wantErr(t, "release", lease.Release(t.Context()), nil)
				}
			})
		}
		wg.Wait()
		if guarded.shared == 0 {
			t.Error("no try was granted")
		}
		mustRelease(t, mustLock(t, k.lock(t, observer, path)))
	}, oneOfEach())
}

// A commons is what a read/write lock guards in a test. The counters find two
// owners that should not be in at once; shared, which only the lock guards, has
// the race detector find them.
type sharedValue struct {
	t                *testing.T
	readers, writers atomic.Int32
	crowd            atomic.Int32 // most readers at once
	shared           int
	fence            int64 // of the latest writer
}

func (w *sharedValue) read(c *framework.Client) {
	n := w.readers.Add(1)
	for most := w.crowd.Load(); n > most && !w.crowd.CompareAndSwap(most, n); {
		most = w.crowd.Load()
	}
	if w.writers.Load() != 0 {
		w.t.Error("a reader beside a writer")
	}
	if _, _, err := c.Exists(context.Background(), "/"); err != nil { // time for others to come
		w.t.Error(err)
	}
	_ = w.shared
	w.readers.Add(-1)
}

func (w *sharedValue) write(lease *lock.Lease) {
	if w.writers.Add(1) != 1 || w.readers.Load() != 0 {
		w.t.Error("a writer that is not alone")
	}
	w.shared++
	fence := lease.Fence()
	if fence <= w.fence {
		w.t.Errorf("fence %d after %d: must grow", fence, w.fence)
	}
	w.fence = fence
	w.writers.Add(-1)
}

func TestReadWriteExclusion(t *testing.T) {
	t.Parallel()
	const clients, goroutines, rounds = 3, 16, 20 // one in ten writes
	server := zktest.Shared(t)
	shared := &sharedValue{t: t}
	var wg sync.WaitGroup
	for n := range clients {
		c := newClient(t, server.Addr())
		rw := newReadWrite(t, c, "/rw/exclusion")
		for g := range goroutines {
			wg.Go(func() {
				for round := range rounds {
					writes := (n+g+round)%10 == 0
					side := rw.Read()
					if writes {
						side = rw.Write()
					}
					lease, err := side.Lock(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					if writes {
						shared.write(lease)
					} else {
						shared.read(c)
					}
					wantErr(t, "release", lease.Release(context.Background()), nil)
				}
			})
		}
	}
	wg.Wait()
	if want := clients * goroutines * rounds / 10; shared.shared != want {
		t.Errorf("%d writes, want %d", shared.shared, want)
	}
	if shared.crowd.Load() < 2 {
		t.Error("no two readers were in at once")
	}
}

// TestContentionUnderFaults has owners of two clients contend for one lock, so that many wait in
// one session, and some withdraw. Meanwhile connections are cut, sessions end and an operator
// deletes the znodes of waiters.
func TestContentionUnderFaults(t *testing.T) {
	t.Parallel()
	const path = "/interleaved/crowd"
	mutex := func(opts ...lock.Option) func(*testing.T, *framework.Client, int) lock.Locker {
		return func(t *testing.T, c *framework.Client, _ int) lock.Locker { return newMutex(t, c, path, opts...) }
	}
	kinds := map[string]func(t *testing.T, c *framework.Client, i int) lock.Locker{
		"mutex":     mutex(),
		"semaphore": func(t *testing.T, c *framework.Client, _ int) lock.Locker { return newSemaphoreMutex(t, c, path) },
		"writers":   func(t *testing.T, c *framework.Client, _ int) lock.Locker { return newReadWrite(t, c, path).Write() },
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				synctest.Test(t, func(t *testing.T) {
					srv := virtualServer(t)
					w := &contention{t: t, srv: srv, path: path, held: make(map[*lock.Lease]bool), doomed: make(map[string]bool)}
					for range 2 {
						s := newService("crowd", func(opts ...framework.Option) *framework.Client { return virtualClient(t, srv, opts...) })
						w.services = append(w.services, s)
					}
					w.live(rand.New(rand.NewPCG(seed, 7)), kind)
					if t.Failed() {
						t.Fatal("seed ", seed)
					}
				})
			}
		})
	}
}

// A crowd is those who contend, and what they have.
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

func (w *contention) live(r *rand.Rand, kind func(*testing.T, *framework.Client, int) lock.Locker) {
	var owners sync.WaitGroup
	for i := range 12 {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		l := kind(w.t, w.services[i%2].client, i)
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
	for _, left := range znodesBelow(w.srv, w.path) {
		if len(left) > len(w.path)+len("/leases/") {
			w.t.Error("left: ", left)
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
		slices.SortFunc(names, func(a, b string) int { return compareTails(a, b) })
		if len(names) < 2 {
			continue
		}
		victim := framework.JoinPath(dir, names[1+r.IntN(len(names)-1)])
		w.mu.Lock()
		w.doomed[victim] = true
		w.mu.Unlock()
		err = operator.Delete(w.t.Context(), victim)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			w.t.Error(fmt.Errorf("operator: %w", err))
		}
	}
}

func compareTails(a, b string) int {
	return slices.Compare([]byte(a[len(a)-10:]), []byte(b[len(b)-10:]))
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
			select {
			case got := <-done:
				t.Errorf("granted beside a holder, %d writes after the creation: %v", prior, got.Err)
				mustRelease(t, held)
				mustRelease(t, got.Lease)
			default:
				mustRelease(t, held)
				mustRelease(t, granted(t, done, "the grant"))
			}
		})
	}
}
