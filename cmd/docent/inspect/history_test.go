package inspect_test

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

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// A history is what the server has decided, in order.
type history struct {
	mu   sync.Mutex // guards done
	done []zkserver.Transaction
}

func (h *history) note(x zkserver.Transaction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, x)
}

func (h *history) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.done)
}

// at returns the locks as they were after the first n transactions, all at one instant.
func (h *history) at(n int) inspect.Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	znodes := map[string]inspect.Znode{}
	for _, x := range h.done[:n] {
		for _, c := range x.Changes {
			switch z := znodes[c.Path]; c.Kind {
			case zkserver.Created:
				znodes[c.Path] = inspect.Znode{Path: c.Path, Data: c.Data, Stat: framework.Stat{Czxid: x.Zxid, EphemeralOwner: c.Owner}}
			case zkserver.DataSet:
				z.Data = c.Data
				znodes[c.Path] = z
			case zkserver.Deleted:
				delete(znodes, c.Path)
			case zkserver.ACLSet, zkserver.NothingSet:
			}
		}
	}
	children := map[string][]inspect.Znode{}
	for path, z := range znodes {
		dir, _ := zkpath.Split(path)
		children[dir] = append(children[dir], z)
	}
	var s inspect.Snapshot
	for _, dir := range children["/locks"] {
		for _, z := range children[dir.Path] {
			z.Children = children[z.Path]
			dir.Children = append(dir.Children, z)
		}
		if l, ok := inspect.Of(dir); ok {
			s.Locks = append(s.Locks, l)
		}
	}
	return s
}

// slowly has each request leave after a random time, so that the locks change between two reads.
func slowly(srv *zkserver.Server, pick *rand.Rand) framework.Option {
	var mu sync.Mutex // guards pick
	return framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := srv.Dial(ctx, network, addr)
		return slowConn{conn, func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(pick.IntN(int(200 * time.Millisecond)))
		}}, err
	})
}

type slowConn struct {
	net.Conn
	pause func() time.Duration
}

func (c slowConn) Write(p []byte) (int, error) {
	<-time.After(c.pause()) // virtual
	return c.Conn.Write(p)
}

// fair returns the locker of the number: mutexes, a read/write lock's sides, a semaphore.
func fair(c *framework.Client, n int) lock.Locker {
	path := fmt.Sprintf("/locks/%d", n)
	switch n {
	case 0:
		return orPanic(lock.NewSemaphoreMutex(c, path))
	case 1:
		return orPanic(lock.NewRWMutex(c, path)).Write()
	}
	return orPanic(lock.NewMutex(c, path))
}

// work has an owner acquire the locks in this order, withdraw after the limit, and release what it has.
func work(t *testing.T, c *framework.Client, order []int, limit, hold time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(lock.ContextWithOwner(t.Context(), lock.NewOwner("owner")), limit)
	defer cancel()
	var held []*lease.Lease
	for _, n := range order {
		l, err := fair(c, n).Lock(ctx)
		if err != nil {
			break // the limit
		}
		held = append(held, l)
		<-time.After(hold) // virtual
	}
	for _, l := range slices.Backward(held) {
		if err := l.Release(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, lease.ErrLost) {
			t.Error(err)
		}
	}
}

// diagnose looks for deadlocks until the work is over, and compares each confirmed one with the
// history: its parties could not go on at any instant between the two snapshots. It counts the deadlocks, and those of
// one snapshot that are not confirmed.
func diagnose(t *testing.T, c *framework.Client, h *history, over func() bool) (confirmed, dropped int) {
	t.Helper()
	for !over() {
		first := mustScan(t, c, "/locks", inspect.Limits{})
		suspected := inspect.Deadlocks(first, first)
		from := h.len()
		<-time.After(time.Second) // virtual
		to := h.len()
		second := must.Get(inspect.Confirm(t.Context(), c, first))(t)
		errs := 0
		for _, f := range inspect.Deadlocks(first, second) {
			if f.Severity != inspect.Error {
				continue
			}
			errs++
			for n := from; n <= to; n++ {
				if was := inspect.Deadlocks(h.at(n), h.at(n)); !slices.ContainsFunc(was, func(w inspect.Finding) bool { return covers(w, f) }) {
					t.Fatalf("%v were stuck in both snapshots, and not after transaction %d: %+v", f.Parties, n, was)
				}
			}
		}
		confirmed += errs
		dropped += max(0, len(suspected)-errs)
	}
	return confirmed, dropped
}

// covers reports whether all parties of f are among those of w.
func covers(w, f inspect.Finding) bool {
	return !slices.ContainsFunc(f.Parties, func(p inspect.Party) bool {
		return !slices.ContainsFunc(w.Parties, func(q inspect.Party) bool { return q.ID == p.ID })
	})
}

// TestAConfirmedDeadlockIsInTheHistory lets owners of two clients acquire locks in random orders, so that they
// deadlock until a wait's deadline.
func TestAConfirmedDeadlockIsInTheHistory(t *testing.T) {
	t.Parallel()
	var confirmed, dropped atomic.Int64
	t.Run("runs", func(t *testing.T) {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c, d := runWorkers(t, seed)
					confirmed.Add(int64(c))
					dropped.Add(int64(d))
				})
			})
		}
	})
	if confirmed.Load() < 10 || dropped.Load() < 3 {
		t.Errorf("%d deadlocks confirmed and %d dropped: too few to show anything", confirmed.Load(), dropped.Load())
	}
}

// runWorkers has five goroutines work for a virtual minute, and diagnoses their locks meanwhile.
func runWorkers(t *testing.T, seed uint64) (confirmed, dropped int) {
	t.Helper()
	h := &history{}
	e := &ensemble{zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithSeed(seed), zkserver.WithObserver(h.note))...)}
	clients := []*framework.Client{e.client(t), e.client(t)}
	mustCreate(t, clients[0], "/locks", "")
	observer := orPanic(framework.NewClient(e.server.Addr(), slowly(e.server, rand.New(rand.NewPCG(seed, 5)))))
	defer func() { must.OK(t, observer.Close()) }()
	until, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 5 {
		pick := rand.New(rand.NewPCG(seed, uint64(100+i)))
		wg.Go(func() {
			for until.Err() == nil {
				order := pick.Perm(4)[:2+pick.IntN(2)]
				work(t, clients[i%2], order, time.Duration(2+pick.IntN(14))*time.Second, time.Duration(pick.IntN(800))*time.Millisecond)
			}
		})
	}
	return diagnose(t, observer, h, func() bool { return until.Err() != nil })
}
