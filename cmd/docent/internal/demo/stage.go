package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkserver"
)

// root is the directory of the demo's locks.
const root = "/demo"

// A stage has the workers of the demo. Each has a session of its own, as each process would.
type stage struct {
	ctx    context.Context
	cancel context.CancelFunc
	server *zkserver.Server
	say    func(format string, args ...any)
	wg     sync.WaitGroup // the goroutines of workers
}

// newStage starts the workers. close ends them.
func newStage(ctx context.Context, server *zkserver.Server, say func(format string, args ...any)) *stage {
	s := &stage{server: server, say: func(format string, args ...any) {
		say(time.Now().Format("15:04:05 ")+format, args...)
	}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.say("workers share a mutex, a read-write lock, a semaphore and an election")
	for _, start := range []func(){s.share, s.stuck, s.revocation, s.loss, s.deadlock} {
		start()
	}
	return s
}

// close ends the workers and waits for them.
func (s *stage) close() {
	s.cancel()
	s.wg.Wait()
}

// work runs fn on a goroutine and with a session of its own, until it returns. Its context has an
// owner of that name. An error ends the worker, and is reported.
func (s *stage) work(name string, fn func(ctx context.Context, c *framework.Client) error) {
	ctx := lock.ContextWithOwner(s.ctx, lock.NewOwner(name))
	s.wg.Go(func() { // close waits for it
		c, err := framework.NewClient(s.server.Addr(), framework.WithDialer(s.server.Dial), framework.WithSessionTimeout(sessionTimeout))
		if err == nil {
			if err = fn(ctx, c); s.ctx.Err() != nil {
				err = nil // the demo has ended
			}
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			s.say("%s: %v", name, err)
		}
	})
}

const sessionTimeout = 10 * time.Second

// pause waits, unless the demo ends. It reports whether it goes on.
func pause(ctx context.Context, least, most time.Duration) bool {
	select {
	case <-time.After(least + rand.N(most-least+1)):
		return true
	case <-ctx.Done():
		return false
	}
}

// An acquire acquires a lock for a worker.
type acquire = func(context.Context, *framework.Client) (*lease.Lease, error)

// turns returns the function of a worker that acquires and holds a lock, again and again.
func turns(acquire acquire, hold, between time.Duration) func(context.Context, *framework.Client) error {
	return func(ctx context.Context, c *framework.Client) error {
		for pause(ctx, between/2, between) {
			l, err := acquire(ctx, c)
			if err != nil {
				return err
			}
			select {
			case <-time.After(hold/2 + rand.N(hold)):
			case <-l.Lost():
			case <-ctx.Done():
			}
			if err := l.Release(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, lease.ErrLost) {
				return err
			}
		}
		return nil
	}
}

// share has workers take turns at a mutex, a read-write lock, a semaphore and an election.
func (s *stage) share() {
	for _, w := range []struct {
		names         []string
		acquire       acquire
		hold, between time.Duration
	}{
		{[]string{"nightly", "invoices", "export", "cleanup"}, mutex(root + "/report"), 4 * time.Second, 3 * time.Second},
		{[]string{"search", "web", "mobile"}, catalog((*lock.RWMutex).Read), 4 * time.Second, 4 * time.Second},
		{[]string{"editor"}, catalog((*lock.RWMutex).Write), 3 * time.Second, 6 * time.Second},
		{[]string{"etl-1", "etl-2", "etl-3", "etl-4", "etl-5"}, permit, 6 * time.Second, 3 * time.Second},
		{[]string{"scheduler-a", "scheduler-b", "scheduler-c"}, campaign, 40 * time.Second, 2 * time.Second},
	} {
		for _, name := range w.names {
			s.work(name, turns(w.acquire, w.hold, w.between))
		}
	}
}

func mutex(path string) acquire {
	return func(ctx context.Context, c *framework.Client) (*lease.Lease, error) {
		m, err := lock.NewMutex(c, path)
		if err != nil {
			return nil, err
		}
		return m.Lock(ctx)
	}
}

func catalog[L lock.Locker](side func(*lock.RWMutex) L) acquire {
	return func(ctx context.Context, c *framework.Client) (*lease.Lease, error) {
		rw, err := lock.NewRWMutex(c, root+"/catalog")
		if err != nil {
			return nil, err
		}
		return side(rw).Lock(ctx)
	}
}

func permit(ctx context.Context, c *framework.Client) (*lease.Lease, error) {
	permits, err := semaphore.New(c, root+"/import", 3)
	if err != nil {
		return nil, err
	}
	return permits.Acquire(ctx, 1)
}

func campaign(ctx context.Context, c *framework.Client) (*lease.Lease, error) {
	e, err := leader.New(c, root+"/scheduler")
	if err != nil {
		return nil, err
	}
	return e.Campaign(ctx)
}
