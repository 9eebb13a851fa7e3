package sim_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A bug is something that is broken on purpose, from outside: nothing of it is in what
// users get. The zero value breaks nothing.
type bug struct {
	locker   func(k *worker, f *framework.Client, h *handle) lock.Locker
	fence    func(*lock.Lease) int64
	guards   func(*lock.Lease) []framework.TxnOp
	dialed   func(net.Conn) net.Conn
	listener func(func(framework.StateChange)) func(framework.StateChange)
	err      func(error) error
	harm     func(*world)
	end      func()
}

// A wrapped locker asks another one its own way.
type wrapped struct {
	lock, try func(context.Context) (*lock.Lease, error)
}

func (l wrapped) Lock(ctx context.Context) (*lock.Lease, error)    { return l.lock(ctx) }
func (l wrapped) TryLock(ctx context.Context) (*lock.Lease, error) { return l.try(ctx) }

// bugs are, for each guarantee, what its validator has to find.
var bugs = []struct {
	guarantee guarantee
	what      string
	make      func() bug
}{
	{exclusion, "one of the clients locks another path", func() bug { return bug{locker: elsewhere} }},
	{lossFirst, "the client takes its session to last twice as long as the server", func() bug {
		return bug{dialed: func(c net.Conn) net.Conn { return &flatterer{Conn: c} }}
	}},
	{noGhost, "an attempt that fails leaves a znode in the queue", func() bug { return bug{locker: littering} }},
	{ownSession, "a lease is of another client's session", func() bug { return bug{locker: borrowing} }},
	{grantOrder, "the server gives numbers again", func() bug { return bug{harm: renumber} }},
	{monotonicFence, "the fence is the number in the znode's name", func() bug {
		return bug{fence: func(l *lock.Lease) int64 { _, number, _ := ranks(l.Node()); return number + 1 }}
	}},
	{monotonicFence, "writes are not guarded", func() bug {
		return bug{guards: func(*lock.Lease) []framework.TxnOp { return nil }}
	}},
	{boundedCalls, "Lock takes its time when its context has ended", func() bug { return bug{locker: slow} }},
	{liveness, "who waits is never woken", func() bug { return bug{locker: deaf} }},
	{honestStates, "a listener is not told of every third change", func() bug { return bug{listener: forgetful} }},
	{honestStates, "a client takes its session to last for ever", func() bug {
		return bug{dialed: func(c net.Conn) net.Conn { return &flatterer{Conn: c} }}
	}},
	{nothingHidden, "goroutines are left behind", leaking},
	{nothingHidden, "errors tell a secret", func() bug {
		return bug{err: func(err error) error { return errors.Join(err, errors.New(secret)) }}
	}},
	{nothingHidden, "errors are none that is documented", func() bug { return bug{locker: vague} }},
}

// TestEveryValidatorFindsItsBug breaks something for each validator: a check that
// can't fail is no check.
func TestEveryValidatorFindsItsBug(t *testing.T) {
	for _, g := range guarantees() {
		if !slices.ContainsFunc(bugs, func(b struct {
			guarantee guarantee
			what      string
			make      func() bug
		},
		) bool {
			return b.guarantee == g
		}) {
			t.Errorf("there is no bug for the validator of %s", g)
		}
	}
	const seeds = 60 // within which the bug has to show
	for _, b := range bugs {
		t.Run(string(b.guarantee)+": "+b.what, func(t *testing.T) {
			for seed := uint64(1); seed <= seeds; seed++ {
				w := simulate(t, newWorld(newPlan(seed), b.make()))
				if slices.Contains(w.found(), b.guarantee) {
					t.Logf("found with seed %d, by %v", seed, w.found())
					return
				}
			}
			t.Errorf("%d schedules and the validator has found nothing", seeds)
		})
	}
}

// elsewhere has every client but the first lock a path of its own.
func elsewhere(k *worker, f *framework.Client, h *handle) lock.Locker {
	if h.kind() != "mutex" || k.c == k.w.clients[0] {
		return h.locker
	}
	other, err := lock.NewMutex(f, h.target.path+"-other")
	if err != nil {
		panic(err)
	}
	return other
}

// A flatterer doubles the session timeout in the answer to the handshake.
type flatterer struct {
	net.Conn
	passed int
}

func (c *flatterer) Read(p []byte) (int, error) {
	const at = 8 // behind the frame's length and the protocol's version
	n, err := c.Conn.Read(p)
	if from := at - c.passed; from >= 0 && from+4 <= n {
		told := p[from : from+4]
		binary.BigEndian.PutUint32(told, 2*binary.BigEndian.Uint32(told))
	}
	c.passed += n
	return n, err
}

func littering(_ *worker, f *framework.Client, h *handle) lock.Locker {
	if h.kind() != "mutex" {
		return h.locker
	}
	return wrapped{try: h.locker.TryLock, lock: func(ctx context.Context) (*lock.Lease, error) {
		l, err := h.locker.Lock(ctx)
		if err != nil {
			_, _ = f.Create(context.WithoutCancel(ctx), h.target.path+"/_c_00000000-lock-", nil, framework.Ephemeral(), framework.Sequential())
		}
		return l, err
	}}
}

// borrowing has clients lock by the connection of the last of them.
func borrowing(k *worker, _ *framework.Client, h *handle) lock.Locker {
	if h.kind() != "mutex" {
		return h.locker
	}
	lender := k.w.clients[len(k.w.clients)-1].current()
	other, err := lock.NewMutex(lender, h.target.path)
	if err != nil {
		panic(err)
	}
	return other
}

// renumber has the server begin its sequence numbers anew, now and then.
func renumber(w *world) {
	for w.now() < w.plan.horizon {
		pass(w.plan.timeout / 4)
		for _, t := range w.plan.targets {
			_ = w.srv.SetNextSequence(t.path, 0) // there may be nobody
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

// deaf waits, where somebody else has the lock, for the end of its context alone.
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
