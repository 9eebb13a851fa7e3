package sim_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// The bugs of this file are lockers that wrap the real ones.

// of is a bug of the lockers of one kind alone: that of a handle or of its target.
func of(kind string, locker lockerBug) lockerBug {
	return func(k *worker, f *framework.Client, h *handle) lock.Locker {
		if h.kind() == kind || h.target != nil && h.target.kind == kind {
			return locker(k, f, h)
		}
		return h.locker
	}
}

// elsewhere has every client but the first lock a path of its own.
func elsewhere(k *worker, f *framework.Client, h *handle) lock.Locker {
	if k.c == k.env.clients[0] {
		return h.locker
	}
	return made(lock.NewMutex(f, h.target.path+"-other"))
}

func littering(_ *worker, f *framework.Client, h *handle) lock.Locker {
	return wrapped{try: h.locker.TryLock, lock: func(ctx context.Context) (*lock.Lease, error) {
		l, err := h.locker.Lock(ctx)
		if err != nil {
			_, _ = f.Create(context.WithoutCancel(ctx), h.target.path+"/_c_00000000-lock-", nil, framework.Ephemeral(), framework.Sequential())
		}
		return l, err
	}}
}

// borrowing has clients lock by the connection of the last of them.
func borrowing(k *worker, f *framework.Client, h *handle) lock.Locker {
	lender := k.env.clients[len(k.env.clients)-1].current()
	if f == lender {
		return h.locker
	}
	return made(k.handle(lender, h.name)).locker
}

// renumber has the server begin its sequence numbers again, now and then.
func renumber(env *environment) {
	for env.now() < env.plan.horizon {
		pass(env.plan.timeout / 4)
		for _, t := range env.plan.targets {
			_ = env.srv.SetNextSequence(env.plan.root+t.path, 0) // the directory may not exist
		}
	}
}

func slow(_ *worker, _ *framework.Client, h *handle) lock.Locker {
	return wrapped{try: h.locker.TryLock, lock: func(ctx context.Context) (*lock.Lease, error) {
		l, err := h.locker.Lock(ctx)
		if err != nil {
			pass(2 * time.Second)
		}
		return l, err
	}}
}

// deaf waits, while another client has the lock, for the end of its context alone.
func deaf(_ *worker, _ *framework.Client, h *handle) lock.Locker {
	return wrapped{try: h.locker.TryLock, lock: func(ctx context.Context) (*lock.Lease, error) {
		l, err := h.locker.TryLock(ctx)
		if errors.Is(err, lock.ErrHeld) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return l, err
	}}
}

func vague(_ *worker, _ *framework.Client, h *handle) lock.Locker {
	return wrapped{lock: h.locker.Lock, try: func(ctx context.Context) (*lock.Lease, error) {
		l, err := h.locker.TryLock(ctx)
		if err != nil {
			err = errors.New("something went wrong")
		}
		return l, err
	}}
}

func forgetful(listen func(framework.StateChange)) func(framework.StateChange) {
	n := 0
	return func(change framework.StateChange) {
		if n++; n%3 != 0 {
			listen(change)
		}
	}
}

// leaking starts a goroutine at each Lock, that ends after the check.
func leaking() bug {
	var (
		once sync.Once
		stop chan struct{}
	)
	return bug{
		locker: func(_ *worker, _ *framework.Client, h *handle) lock.Locker {
			once.Do(func() { stop = make(chan struct{}) }) // in the bubble
			return wrapped{try: h.locker.TryLock, lock: func(ctx context.Context) (*lock.Lease, error) {
				go func() { <-stop }()
				return h.locker.Lock(ctx)
			}}
		},
		end: func() { close(stop) },
	}
}
