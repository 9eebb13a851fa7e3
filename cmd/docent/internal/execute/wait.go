package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// signalError is the cause of a wait that a signal ended.
type signalError struct{ number syscall.Signal }

func (e signalError) Error() string { return "ended by signal " + name(e.number) }

// acquire waits for the connection and the lock, and until CMD may start. INT, TERM, HUP, QUIT and the guard's death end
// the wait.
func (r *run) acquire(ctx context.Context, c *framework.Client) (l *lease.Lease, budget Budget, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	go func() { // awaited below
		defer close(done)
		l, budget, err = r.acquireWithin(ctx, c)
	}()
	var interrupted error // it counts whatever the wait returns: the signal may have come with the grant
	for waits := true; waits; {
		select {
		case <-done:
			waits = false
		case sig := <-r.signals:
			if number, ok := sig.(syscall.Signal); ok && endsWait(number) && interrupted == nil {
				interrupted = signalError{number}
				cancel(interrupted)
			}
		}
	}
	err = errors.Join(interrupted, err)
	if err != nil && l != nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		err = errors.Join(err, l.Release(bounded))
	}
	return l, budget, err
}

// acquireWithin is acquire within --wait.
func (r *run) acquireWithin(ctx context.Context, c *framework.Client) (*lease.Lease, Budget, error) {
	if r.job.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.job.wait)
		defer cancel()
	}
	if err := r.app.AwaitConnected(ctx, c); err != nil {
		return nil, Budget{}, err
	}
	if _, err := r.budget(c); err != nil {
		return nil, Budget{}, err
	}
	if err := r.job.refuseOuter(ctx, r.app, c); err != nil {
		return nil, Budget{}, err
	}
	l, err := r.lock(ctx, c)
	if err != nil {
		return nil, Budget{}, err
	}
	r.chatty("got it after %v, fence %s", time.Since(r.begin).Round(100*time.Millisecond), fences(l))
	budget, err := r.budget(c) // again, because the session may be another one
	if err == nil {
		err = AwaitAmple(ctx, l, budget)
	}
	return l, budget, err
}

// budget returns the times for the present session.
func (r *run) budget(c *framework.Client) (Budget, error) {
	s := c.Session()
	b, err := NewBudget(s.Timeout, s.Margin, r.job.grace)
	if err != nil {
		return b, cli.Usage(err)
	}
	return b, nil
}

// lock waits for the lock, or makes one attempt.
func (r *run) lock(ctx context.Context, c *framework.Client) (*lease.Lease, error) {
	locker, first, err := r.job.locker(c, func() {
		select {
		case r.revoked <- struct{}{}:
		default: // a request is there already
		}
	})
	if err != nil {
		return nil, cli.Usage(err)
	}
	ctx = lock.ContextWithOwner(ctx, r.owner)
	if r.job.nonblock {
		return locker.TryLock(ctx)
	}
	stop := r.talk(ctx, c, first)
	defer stop()
	return locker.Lock(ctx)
}

// talk says which contender docent waits for, once it has waited for a second. stop waits for its
// goroutine.
func (r *run) talk(ctx context.Context, c *framework.Client, first shown) (stop func()) {
	if first == nil || r.app.Settings().Quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var talking sync.WaitGroup
	talking.Go(func() { // ends with ctx
		pause := talkAfter
		if r.app.Settings().Verbose {
			pause = talkAfter / 20
		}
		for ; ; pause = talkAfter {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			list, err := first.Participants(ctx)
			ahead := slices.IndexFunc(list, func(p lease.Participant) bool { return p.Session == c.Session().ID })
			if err == nil && ahead > 0 {
				r.say("waiting behind %s, %d ahead", describeHolder(list[0]), ahead)
				return
			}
		}
	})
	return func() { cancel(); talking.Wait() }
}

// describeHolder describes a contender for a message.
func describeHolder(p lease.Participant) string {
	m := p.Metadata
	if m == nil {
		return cli.Safe(p.Path)
	}
	text := fmt.Sprintf("%s pid %d", cli.Safe(m.Host), m.PID)
	if m.Owner != "" {
		text += fmt.Sprintf(" owner %q", cli.Safe(m.Owner))
	}
	return fmt.Sprintf("%s (since %s)", text, m.Since.UTC().Format(time.TimeOnly+"Z"))
}

// endsWait reports whether the signal ends docent's wait for the lock.
func endsWait(sig syscall.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT || sig == syscall.SIGKILL
}
