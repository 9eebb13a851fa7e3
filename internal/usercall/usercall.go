// Package usercall calls functions of the user's on goroutines of the library's.
package usercall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Guard calls fn. If fn panics, Guard logs an error, with the stack and the name of the option or
// method that fn was passed to, and returns. A panic has no caller to reach, and must not end the
// process.
func Guard(log *zap.Logger, name string, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("a function of the user's panicked", zap.String("function", name),
				zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
		}
	}()
	fn()
}

// lateGrace is how long [Bounded] waits for a function whose context has ended: most return then, and
// have an error that says more.
const lateGrace = 20 * time.Millisecond

// errNoReturn is the error of a function that neither returned nor panicked (runtime.Goexit).
var errNoReturn = errors.New("a function of the user's did not return")

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

// Bounded returns what fn returns. It calls fn on another goroutine, so that fn can't block the
// caller. If ctx ends first, Bounded returns ctx's error a moment later, and late
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
		r := result{err: errNoReturn}
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

// Require panics if an argument that must not be nil was not given. The text names the argument and
// the exported function that the user called, so the functions below it may call Require for it.
func Require(argument string, given bool) {
	if !given {
		panic(calledByUser() + ": " + argument + ": must not be nil")
	}
}

// calledByUser returns the name of the outermost function of this module on the stack, as in
// "lock.(*Mutex).Lock".
func calledByUser() string {
	const module, depth = "github.com/docent-go/docent/", 64
	pcs := make([]uintptr, depth)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	name := "docent"
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, module) || strings.Contains(frame.Function, "_test.") {
			return name
		}
		name = frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]
		if !more {
			return name
		}
	}
}

// Unblocked returns a logger that writes to log's sink on a goroutine of q. If the sink blocks, the
// logger's callers do not: up to a thousand lines wait for it, and further lines are dropped. Once the
// sink has gone on, a line says how many.
func Unblocked(log *zap.Logger, q *Queue) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return queuedCore{Core: core, queue: q, dropped: new(atomic.Int64)}
	}))
}

// A queuedCore writes the lines of another core on its queue's goroutine.
type queuedCore struct {
	zapcore.Core
	queue   *Queue
	dropped *atomic.Int64
}

// With is part of [zapcore.Core], as the following methods are.
func (c queuedCore) With(fields []zapcore.Field) zapcore.Core {
	c.Core = c.Core.With(fields)
	return c
}

func (c queuedCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c queuedCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	written := c.queue.Do(func() {
		c.write(entry, fields)
		if n := c.dropped.Swap(0); n > 0 {
			lines := zap.Int64("lines", n)
			c.write(zapcore.Entry{Level: zap.WarnLevel, Time: time.Now(), LoggerName: entry.LoggerName, Message: "log lines were dropped, because the sink blocked"}, []zapcore.Field{lines})
		}
	})
	if !written {
		c.dropped.Add(1)
	}
	return nil // an error of the sink goes to standard error, as zap's own do
}

func (c queuedCore) write(entry zapcore.Entry, fields []zapcore.Field) {
	if checked := c.Core.Check(entry, nil); checked != nil {
		checked.ErrorOutput = os.Stderr
		checked.Write(fields...)
	}
}
