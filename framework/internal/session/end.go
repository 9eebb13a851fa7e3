package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
)

// HeldAtEnd returns how many holds were lost with the session; 0 for nil.
func (s *Session) HeldAtEnd() int {
	if s == nil {
		return 0
	}
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	return s.holds.atEnd
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

// CloseAtServer asks the server of the present connection to end the session, which has ended for the client.
// It returns nil once the server has done that.
func (s *Session) CloseAtServer(ctx context.Context) error { return s.wire.CloseSession(ctx) }

// Retire ends what carries the session, and waits for its goroutines and sockets.
func (s *Session) Retire() { s.wire.Retire(s.Ended()) }

// sessionError translates the wire's error at a session's end.
func sessionError(err error) error {
	switch {
	case errors.Is(err, wire.ErrExpired):
		return zkerr.ErrSessionExpired
	case errors.Is(err, wire.ErrSubstituted):
		return fmt.Errorf("%w: %w", zkerr.ErrSessionExpired, err)
	}
	return err
}

// End ends the session for the cause. When it returns, all its holds are lost. The loop does the rest.
func (s *Session) End(cause error) { _ = s.lose(cause) }

// Cancel makes the loop end the session for the cause.
func (s *Session) Cancel(cause error) { s.cancel(cause) }
