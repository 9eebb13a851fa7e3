// Package usercall calls functions of the user's on goroutines of the library's.
package usercall

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Guard calls fn. If fn panics, Guard logs an error, with the stack and the name of the option or
// method that fn was passed to, and returns. A panic has no caller to reach, and must not end the
// process. If fn calls runtime.Goexit, the goroutine ends.
func Guard(log *zap.Logger, name string, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("a function of the user's panicked", zap.String("function", name),
				zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
		}
	}()
	fn()
}

// GuardExit is Guard for a caller that has to go on if fn calls runtime.Goexit, which it logs, too. It
// calls fn on a goroutine of its own, and waits for that.
func GuardExit(log *zap.Logger, name string, fn func()) {
	done := make(chan struct{})
	go func() { // ends with fn, and GuardExit waits for it
		defer close(done)
		returned := false
		defer func() {
			if !returned {
				log.Error("a function of the user's ended its goroutine", zap.String("function", name))
			}
		}()
		Guard(log, name, fn)
		returned = true
	}()
	<-done
}

// lateGrace is how long [Bounded] waits for a function whose context has ended: most return then, and
// have an error that says more.
const lateGrace = 20 * time.Millisecond

// ErrExited is the error of a function that ended its goroutine (runtime.Goexit).
var ErrExited = errors.New("a function of the user's ended its goroutine")

// MostCalls is how many calls of a [Calls] run at the same time: far more than are made, unless the
// function never returns.
const MostCalls = 64

// Calls counts the calls of a user's functions that run. Its zero value counts none.
type Calls struct{ running atomic.Int64 }

// Count counts a call until done is called. It returns false, and counts nothing, if too many run.
func (c *Calls) Count() (done func(), ok bool) {
	if c.running.Add(1) > MostCalls {
		c.running.Add(-1)
		return nil, false
	}
	return func() { c.running.Add(-1) }, true
}

// Bounded returns what fn returns. It calls fn on another goroutine, so that fn can neither block the
// caller nor end its goroutine. If ctx ends first, Bounded returns ctx's error a moment later, and late
// is called with what fn returns without an error, if it ever does. late may be nil. A panic of fn is an
// error. If [MostCalls] calls run already, fn is not called: those that never return keep a goroutine each.
func Bounded[T any](ctx context.Context, calls *Calls, fn func() (T, error), late func(T)) (T, error) {
	over, ok := calls.Count()
	if !ok {
		var zero T
		return zero, fmt.Errorf("not called: %d earlier calls of functions of the user's have not returned", MostCalls)
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result) // the receiver takes the value, or given is closed
	given := make(chan struct{})
	go func() { // ends with fn
		r := result{err: ErrExited}
		defer over()
		defer func() {
			if v := recover(); v != nil {
				r.err = fmt.Errorf("a function of the user's panicked: %v", v)
			}
			select {
			case done <- r:
			case <-given:
				if r.err == nil && late != nil {
					late(r.value)
				}
			}
		}()
		r.value, r.err = fn()
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(lateGrace)
	defer grace.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-grace.C:
		close(given)
		var zero T
		return zero, context.Cause(ctx)
	}
}
