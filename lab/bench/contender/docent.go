package contender

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
)

// multiSize is how many members a multi-lock has.
const multiSize = 10

// permits is how many permits a semaphore has.
const permits = 2

// localHandoffs is how often in a row a mutex goes from goroutine to goroutine.
const localHandoffs = 100

// docent is the library whose benchmark this is, with its defaults.
type docent struct{}

// Version leaves it to the program that measures to find the commit.
func (docent) Version() string { return "" }

func (docent) Connect(ctx context.Context, server string, timeout time.Duration) (Session, error) {
	client, err := framework.NewClient(server, framework.WithSessionTimeout(timeout))
	if err != nil {
		return nil, err
	}
	if err := client.AwaitConnected(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return docentSession{client, &locals{byPath: make(map[string]*lock.Local)}}, nil
}

type docentSession struct {
	client *framework.Client
	locals *locals
}

// locals are the Locals of a session: the workers on one path share one.
type locals struct {
	mu     sync.Mutex // guards byPath
	byPath map[string]*lock.Local
}

func (l *locals) of(c *framework.Client, path string) (lock.Locker, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if local := l.byPath[path]; local != nil {
		return local, nil
	}
	m, err := lock.NewMutex(c, path)
	if err != nil {
		return nil, err
	}
	local, err := lock.NewLocal(m, localHandoffs)
	if err != nil {
		return nil, err
	}
	l.byPath[path] = local
	return local, nil
}

func (s docentSession) Close() error { return s.client.Close() }

func (s docentSession) Get(ctx context.Context, path string) error {
	_, _, err := s.client.Get(ctx, path)
	return err
}

// Lock knows the kinds mutex, mutex-owner (re-entered by an explicit owner),
// mutex-local (with local hand-off), read, write, semaphore, multi, leader, counter and
// permits.
func (s docentSession) Lock(kind, path string) (Lock, error) {
	locker, err := s.locker(kind, path)
	if err != nil {
		return nil, err
	}
	l := &docentLock{locker: locker}
	if kind == "mutex-owner" {
		l.owner = lock.NewOwner("bench")
	}
	return l, nil
}

func (s docentSession) locker(kind, path string) (lock.Locker, error) {
	switch kind {
	case "mutex", "mutex-owner":
		return lock.NewMutex(s.client, path)
	case "mutex-local":
		return s.locals.of(s.client, path)
	case "semaphore":
		return lock.NewSemaphoreMutex(s.client, path)
	case "read", "write":
		rw, err := lock.NewRWMutex(s.client, path)
		if err != nil {
			return nil, err
		}
		if kind == "read" {
			return rw.Read(), nil
		}
		return rw.Write(), nil
	case "leader":
		election, err := leader.New(s.client, path)
		return candidate{election}, err
	case "counter":
		n, err := counter.New(s.client, path)
		return adder{n}, err
	case "permits":
		all, err := semaphore.New(s.client, path, permits)
		return permitsLock{all}, err
	case "multi":
		var all []lock.Locker
		for i := range multiSize {
			m, err := lock.NewMutex(s.client, fmt.Sprintf("%s/%d", path, i))
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
		return lock.NewMulti(all...)
	default:
		return nil, errKind(kind)
	}
}

// A candidate is an election as a lock: the leader has the lock.
type candidate struct{ *leader.Election }

func (c candidate) Lock(ctx context.Context) (*lock.Lease, error) { return c.Campaign(ctx) }

func (c candidate) TryLock(context.Context) (*lock.Lease, error) { return nil, errors.ErrUnsupported }

// An adder is a counter as a lock: to acquire it is to add.
type adder struct{ *counter.Counter }

func (a adder) Lock(ctx context.Context) (*lock.Lease, error) {
	_, err := a.Add(ctx, 1)
	return nil, err
}

func (a adder) TryLock(context.Context) (*lock.Lease, error) { return nil, errors.ErrUnsupported }

// A permitsLock is a semaphore as a lock of all its permits.
type permitsLock struct{ *semaphore.Semaphore }

func (p permitsLock) Lock(ctx context.Context) (*lock.Lease, error) { return p.Acquire(ctx, permits) }

func (p permitsLock) TryLock(ctx context.Context) (*lock.Lease, error) {
	return p.TryAcquire(ctx, permits)
}

// A docentLock keeps the leases that its worker has, the latest last.
type docentLock struct {
	locker lock.Locker
	owner  lock.Owner      // the zero Owner is the worker's goroutine
	bound  context.Context // carries owner; made once, as a service makes it once per request
	leases []*lock.Lease
}

func (l *docentLock) Acquire(ctx context.Context) error {
	lease, err := l.locker.Lock(l.context(ctx))
	if err != nil {
		return err
	}
	l.leases = append(l.leases, lease)
	return nil
}

func (l *docentLock) Release(ctx context.Context) error {
	last := len(l.leases) - 1
	lease := l.leases[last]
	l.leases = l.leases[:last]
	if lease == nil { // of an addition
		return nil
	}
	return lease.Release(ctx)
}

func (l *docentLock) Refused(ctx context.Context) error {
	_, err := l.locker.TryLock(l.context(ctx))
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil
	case err == nil:
		return errors.New("a lock that is held was not refused")
	default:
		return err
	}
}

// context returns the context that carries the explicit owner, if there is one.
func (l *docentLock) context(ctx context.Context) context.Context {
	if l.owner == (lock.Owner{}) {
		return ctx
	}
	if l.bound == nil {
		l.bound = lock.ContextWithOwner(ctx, l.owner)
	}
	return l.bound
}
