package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/usercall"

	"github.com/docent-go/docent/framework/internal/tap"
)

// end ends the session for the first given cause, and returns that cause. Before anything else
// happens, holds are lost, and OnLost's functions return, and then AfterLost's. If another goroutine
// is ending the session, end does not wait for it; finish does.
func (s *Session) end(cause error) error {
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	s.err = cause
	serving := s.linked
	s.held = len(s.holds)
	told := make([]func(error), 0, len(s.holds))
	after := make([]func(), 0, len(s.holds))
	for h := range s.holds {
		h.err = cause
		h.over.Store(true)
		if h.lost != nil {
			close(h.lost)
		}
		if h.onLost != nil {
			told = append(told, h.onLost)
		}
		if h.afterLost != nil {
			after = append(after, h.afterLost)
		}
	}
	clear(s.holds)
	s.secured = 0
	s.mu.Unlock()
	s.cfg.Servers.End() // first: without a context, the wire would dial without a pause
	s.notify(told, cause)
	for _, fn := range after {
		usercall.Guard(s.cfg.Log, "SessionHold.AfterLost", fn)
	}
	s.cancel(cause)
	s.tap.End(cause)
	if !serving {
		s.tap.CloseConn(cause) // a handshake without a reply would delay the wire's end
	}
	event := watchreg.SessionEnded
	if s.cfg.ReadOnly { // it is not the client's session
		event = watchreg.Reconnected
	}
	s.watches.FireAll(event)
	close(s.over)
	return cause
}

// notifiedByOne is how many functions of OnLost one goroutine calls, if there are processors for
// more goroutines. To start a goroutine takes less time than to call so many.
const notifiedByOne = 1000

// notify calls OnLost's functions, on several goroutines if there are many, and waits for them.
func (s *Session) notify(told []func(error), cause error) {
	goroutines := min(runtime.GOMAXPROCS(0), 1+len(told)/notifiedByOne)
	var wg sync.WaitGroup
	for part := range slices.Chunk(told, max(1, (len(told)+goroutines-1)/goroutines)) {
		wg.Go(func() {
			for _, tell := range part {
				usercall.Guard(s.cfg.Log, "SessionHold.OnLost", func() { tell(cause) })
			}
		})
	}
	wg.Wait()
}

// finish is end for the session's own goroutine: it also waits until the goroutine that ended the
// session, which may be another one, has notified all holds.
func (s *Session) finish(cause error) error {
	cause = s.end(cause)
	<-s.over
	return cause
}

// HeldAtEnd returns how many holds were lost with the session; 0 for nil.
func (s *Session) HeldAtEnd() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// UnlessEnded returns the session, or nil if it has ended or is nil.
func (s *Session) UnlessEnded() *Session {
	if s == nil || s.Ended() != nil {
		return nil
	}
	return s
}

// Ended returns the cause of the session's end, or nil. It does not take the session's lock, so it
// may be called with a lock that the session's hooks take.
func (s *Session) Ended() error { return context.Cause(s.ctx) }

// Retire ends the rest of the session's wire. It blocks for up to two seconds.
func (s *Session) Retire() { s.wire.Close(func() { s.tap.CloseConn(s.Ended()) }) }

// sessionError translates the tap's error at a session's end.
func sessionError(err error) error {
	switch {
	case errors.Is(err, tap.ErrExpired):
		return zkerr.ErrSessionExpired
	case errors.Is(err, tap.ErrSubstituted):
		return fmt.Errorf("%w: %s", zkerr.ErrSessionReplaced, err.Error())
	}
	return err
}

// Cancel makes the loop end the session for the cause.
func (s *Session) Cancel(cause error) { s.cancel(cause) }

// WasServing reports whether the session had a connection that served when it ended.
func (s *Session) WasServing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.linked
}
