package sim_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// bugs are, for each guarantee, what its validators have to find.
var bugs = []deliberate{
	{exclusion, "one of the clients locks another path", "has it with", func(b *bug) { b.locker = of("mutex", elsewhere) }},
	{exclusion, "readers lock another path", "__READ__", func(b *bug) { b.locker = of("read", elsewhereToRead) }},
	{exclusion, "who goes on as a reader locks another path", "__READ__", func(b *bug) { b.read = elsewhereToRead }},
	{lossFirst, "the client takes its session to last twice as long as the server", "neither lost nor released", flattering},
	{lossFirst, "a sync counts as a proof of the session", "neither lost nor released", onConnections(newCredulous, (*plan).depose)},
	{lossFirst, "a lease outlives the close of its client", "Close was called", func(b *bug) {
		b.locker, b.plan = borrowing, func(p *plan) {
			p.insist("close a client", p.timeout, 0)
		}
	}},
	{lossFirst, "a connection loses all requests after a while", "no fault explains", func(b *bug) {
		b.dialed = func(c net.Conn) net.Conn { return &mute{Conn: c} }
	}},
	{noOrphan, "an attempt that fails leaves a znode in the queue", "nobody wants it", func(b *bug) { b.locker = of("mutex", littering) }},
	{noOrphan, "Close does not close the session", "Close of client", func(b *bug) {
		b.dialed = func(c net.Conn) net.Conn { return &silent{c} }
	}},
	{ownSession, "a lease is of another client's session", "and the client's is", func(b *bug) { b.locker = borrowing }},
	{grantOrder, "the server gives numbers again", "stands ahead", func(b *bug) { b.harm = renumber }},
	{monotonicFence, "the fence is the number in the znode's name", "after fence", func(b *bug) {
		b.fence = func(_ *environment, l *lock.Lease) int64 { _, number, _ := ranks(l.Node()); return number + 1 }
	}},
	{monotonicFence, "writes are not guarded", "a write to", func(b *bug) {
		b.guards = func(*lock.Lease) []framework.TxnOp { return nil }
	}},
	{boundedCalls, "Lock takes its time when its context has ended", "after its context had ended", func(b *bug) { b.locker = slow }},
	{boundedCalls, "Do waits for the end of its lease", "after fn", func(b *bug) { b.do = patient }},
	{honestAnswers, "Do does not report a loss", "was lost before fn returned", func(b *bug) { b.do = hopeful }},
	{liveness, "a waiter is never woken", "all was well", func(b *bug) { b.locker = deaf }},
	{liveness, "a waiter is not notified", "nothing is in its way", func(b *bug) { b.locker = deaf }},
	{liveness, "readers wait for one another", "nothing is in its way", func(b *bug) {
		b.locker, b.plan = of("read", lonely), onlyReaders
	}},
	{honestStates, "a listener is not told of every third change", "heard of", func(b *bug) { b.listener = forgetful }},
	{honestStates, "a client takes its session to last forever", "which the server has ended", flattering},
	{nothingHidden, "goroutines are left behind", "goroutines are left", leaking},
	{nothingHidden, "errors tell a secret", "tells a secret", func(b *bug) {
		b.err = func(err error) error { return errors.Join(err, errors.New(secret)) }
	}},
	{nothingHidden, "errors are none that is documented", "no documentation names", func(b *bug) { b.locker = vague }},
}

func flattering(b *bug) { b.dialed = newFlatterer }

// onConnections is a bug of connections, in schedules that are changed further.
func onConnections(wrap func(net.Conn) net.Conn, change func(*plan)) func(*bug) {
	return func(b *bug) { b.dialed, b.plan = wrap, change }
}

// Lockers that wrap the real ones, and locks of read/write locks in the place of others.

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
func leaking(b *bug) {
	var (
		once sync.Once
		stop chan struct{}
	)
	b.locker = func(_ *worker, _ *framework.Client, h *handle) lock.Locker {
		once.Do(func() { stop = make(chan struct{}) }) // in the bubble
		return wrapped{try: h.locker.TryLock, lock: func(ctx context.Context) (*lock.Lease, error) {
			go func() { <-stop }()
			return h.locker.Lock(ctx)
		}}
	}
	b.end = func() { close(stop) }
}

// elsewhereToRead is a bug by which readers lock a path of their own.
func elsewhereToRead(_ *worker, f *framework.Client, h *handle) lock.Locker {
	return made(lock.NewRWMutex(f, h.target.path+"-other")).Read()
}

// lonely has readers wait until each other reader is gone.
func lonely(_ *worker, f *framework.Client, h *handle) lock.Locker {
	return made(lock.NewRWMutex(f, h.target.path)).Write()
}

// onlyReaders has all workers read, without a fault that would excuse a wait.
func onlyReaders(p *plan) {
	calm(p)
	t := newTarget("/sim/rw", "rw")
	p.targets = []*target{t}
	for i := range p.clients {
		workers := p.clients[i].workers
		for j := range workers {
			workers[j].kinds, workers[j].multi = []string{"read " + t.path}, nil
		}
	}
}
