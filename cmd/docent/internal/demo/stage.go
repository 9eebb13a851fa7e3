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

	mu      sync.Mutex // guards following
	clients []*framework.Client
	errs    []error
}

// newStage starts the workers. close ends them.
func newStage(ctx context.Context, server *zkserver.Server, say func(format string, args ...any)) *stage {
	s := &stage{server: server, say: func(format string, args ...any) {
		say(time.Now().Format("15:04:05 ")+format, args...)
	}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.say("workers share a mutex, a read-write lock, a semaphore and an election")
	for _, start := range []func(){s.report, s.catalog, s.imports, s.election, s.stuck, s.revocation, s.loss, s.deadlock} {
		start()
	}
	return s
}

// close ends the workers and waits for them.
func (s *stage) close() error {
	s.cancel()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		s.errs = append(s.errs, c.Close())
	}
	return errors.Join(s.errs...)
}

// work runs fn on a goroutine and with a session of its own, until it returns. Its context has an
// owner of that name. An error ends the worker, and is reported at the end.
func (s *stage) work(name string, fn func(ctx context.Context, c *framework.Client) error) {
	ctx := lock.ContextWithOwner(s.ctx, lock.NewOwner(name))
	c, err := framework.NewClient(s.server.Addr(), framework.WithDialer(s.server.Dial), framework.WithSessionTimeout(sessionTimeout))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	s.clients = append(s.clients, c)
	s.wg.Go(func() { // close waits for it
		if err := fn(ctx, c); err != nil && s.ctx.Err() == nil {
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

// turns acquires and holds a lock, again and again.
func turns(ctx context.Context, acquire func(context.Context) (*lease.Lease, error), hold, between time.Duration) error {
	for pause(ctx, between/2, between) {
		l, err := acquire(ctx)
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

// report is a mutex that four workers share.
func (s *stage) report() {
	for _, name := range []string{"nightly", "invoices", "export", "cleanup"} {
		s.work(name, func(ctx context.Context, c *framework.Client) error {
			m, err := lock.NewMutex(c, root+"/report")
			if err != nil {
				return err
			}
			return turns(ctx, m.Lock, 4*time.Second, 3*time.Second)
		})
	}
}

// catalog is a read-write lock with three readers and a writer.
func (s *stage) catalog() {
	for _, name := range []string{"search", "web", "mobile", "editor"} {
		s.work(name, func(ctx context.Context, c *framework.Client) error {
			rw, err := lock.NewRWMutex(c, root+"/catalog")
			if err != nil {
				return err
			}
			if name == "editor" {
				return turns(ctx, rw.Write().Lock, 3*time.Second, 6*time.Second)
			}
			return turns(ctx, rw.Read().Lock, 4*time.Second, 4*time.Second)
		})
	}
}

// imports is a semaphore of three permits, for five workers.
func (s *stage) imports() {
	for _, name := range []string{"etl-1", "etl-2", "etl-3", "etl-4", "etl-5"} {
		s.work(name, func(ctx context.Context, c *framework.Client) error {
			permits, err := semaphore.New(c, root+"/import", 3)
			if err != nil {
				return err
			}
			acquire := func(ctx context.Context) (*lease.Lease, error) { return permits.Acquire(ctx, 1) }
			return turns(ctx, acquire, 6*time.Second, 3*time.Second)
		})
	}
}

// election has three candidates.
func (s *stage) election() {
	for _, name := range []string{"scheduler-a", "scheduler-b", "scheduler-c"} {
		s.work(name, func(ctx context.Context, c *framework.Client) error {
			e, err := leader.New(c, root+"/scheduler")
			if err != nil {
				return err
			}
			return turns(ctx, e.Campaign, 40*time.Second, 2*time.Second)
		})
	}
}
