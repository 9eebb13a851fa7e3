package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
)

// TestReentry keeps the client's loop in a log line, so that the loop cannot end the session at
// the deadline. The call that re-enters has to compare the deadline with the clock itself.
func TestReentry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after   time.Duration // the deadline
		granted bool
	}{
		"just before the deadline": {-time.Millisecond, true},
		"just past the deadline":   {time.Millisecond, false},
	} {
		for _, k := range kindsThat(inQueue) {
			t.Run(name+" of a "+k.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := virtualServer(t)
					logger, stop, goOn := pausable()
					defer goOn()
					c := virtualClient(t, srv, framework.WithLogger(logger))
					l := k.lock(t, c, "/reentry")
					mustLock(t, l)
					stop()
					srv.Refuse()
					srv.Cut()
					synctest.Wait()
					await(time.Until(c.Session().Deadline) + tc.after)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					lease, err := l.Lock(ctx)
					if granted := lease != nil; granted != tc.granted {
						t.Errorf("granted: %v (%v), want %v", granted, err, tc.granted)
					}
					if !tc.granted && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v, want an error that matches DeadlineExceeded", err)
					}
					srv.Accept()
				})
			})
		}
	}
}

// pausable returns a logger that keeps whoever logs, from stop on until goOn.
func pausable() (logger *zap.Logger, stop, goOn func()) {
	core, _ := observer.New(zap.InfoLevel)
	var stopped atomic.Bool
	gate := make(chan struct{})
	hook := func(zapcore.Entry) error {
		if stopped.Load() {
			<-gate
		}
		return nil
	}
	stop = func() { stopped.Store(true) }
	return zap.New(core, zap.Hooks(hook)), stop, func() { close(gate) }
}
