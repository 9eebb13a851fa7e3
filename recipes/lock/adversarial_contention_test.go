package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestContentionUnderFaults has owners of two clients contend for one lock, so that many wait in
// one session, and some withdraw. Meanwhile connections are cut, sessions end and an operator
// deletes the znodes of waiters.
func TestContentionUnderFaults(t *testing.T) {
	t.Parallel()
	const path = "/attack/crowd"
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
		for _, m := range counts(s.measured(w.t).Metrics) {
			for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
				if point.Value != 0 {
					w.t.Errorf("%d of %v when all is over", point.Value, point.Attributes.ToSlice())
				}
			}
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

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
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
