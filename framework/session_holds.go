package framework

import (
	"context"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkconn"
)

// hold adds a hold, unless the session is over.
func (s *session) hold() (*SessionHold, bool) {
	h := &SessionHold{session: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, false
	}
	s.holds[h] = struct{}{}
	if len(s.holds) == 1 {
		s.heldSince = time.Now()
		s.wake() // heartbeats begin
	}
	return h, true
}

// secure secures h if the session's deadline is far enough ahead; fresh reports whether it is.
func (s *session) secure(h *SessionHold) (fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.err != nil {
		return false, h.err
	}
	if h.secured || h.released {
		return true, nil
	}
	if time.Until(s.tap.Deadline()) <= s.timeout()/graceFraction {
		return false, nil // too close: a heartbeat takes a round trip
	}
	h.secured = true
	if s.secured++; s.secured == 1 {
		s.wake() // the deadline counts from now on
	}
	return true, nil
}

func (s *session) lostOf(h *SessionHold) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
		if h.err != nil {
			close(h.lost)
		}
	}
	return h.lost
}

func (s *session) onLost(h *SessionHold, fn func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.onLost = fn
}

func (s *session) release(h *SessionHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.released || h.err != nil {
		return
	}
	h.released = true
	delete(s.holds, h)
	if h.secured {
		s.secured--
	}
}

// prove asks the ensemble for a proof that the session exists. One reply may not be enough to renew
// the deadline, so prove paces callers that ask again.
func (s *session) prove(ctx context.Context) error {
	if err := s.core.awaitLink(ctx, s); err != nil {
		return err
	}
	err := effect(ctx, s, func(w *zkconn.Conn) error { return w.Prove() })
	if err != nil && ctx.Err() != nil {
		return err
	}
	timer := time.NewTimer(s.core.cfg.margin(s.timeout()) / tap.ContactsPerMargin)
	defer timer.Stop()
	if time.Until(s.tap.Deadline()) > s.timeout()/graceFraction {
		return nil
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}
