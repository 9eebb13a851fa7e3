package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/framework/internal/zkerr"
)

// Call runs one request on the session's wire and waits for it until ctx ends. The client can't
// withdraw the request itself: it runs to its end, at the latest when the wire ends. If ctx has ended
// before, nothing is sent, and the error is ctx's.
func Call[T any](ctx context.Context, s *Session, request func(*zkconn.Conn) (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, err
	}
	return Begin(s, request).Wait(ctx)
}

// Effect is Call for a request that has no result.
func Effect(ctx context.Context, s *Session, request func(*zkconn.Conn) error) error {
	_, err := Call(ctx, s, func(w *zkconn.Conn) (struct{}, error) { return struct{}{}, request(w) })
	return err
}

// A Pending is a request that was begun.
type Pending[T any] struct {
	session *Session
	done    chan struct{} // closed when value and err are set
	value   T
	err     error
}

// Begin starts a request in the background.
func Begin[T any](s *Session, request func(*zkconn.Conn) (T, error)) *Pending[T] {
	p := &Pending[T]{session: s, done: make(chan struct{})}
	if s.cfg.Client.Enter() {
		go p.run(request)
	} else {
		p.err = zkerr.ErrClosed
		close(p.done)
	}
	return p
}

// run makes the request. It ends with the reply or the wire; Close waits for it.
func (p *Pending[T]) run(request func(*zkconn.Conn) (T, error)) {
	defer p.session.cfg.Client.Leave()
	p.session.enterRequest()
	defer p.session.leaveRequest()
	p.value, p.err = request(p.session.wire)
	close(p.done)
}

// Session returns the session that carries the request.
func (p *Pending[T]) Session() *Session { return p.session }

// Done returns a channel that is closed when the request has an outcome.
func (p *Pending[T]) Done() <-chan struct{} { return p.done }

// Wait returns the request's outcome. If ctx ends first, the error wraps
// zkerr.ErrUnknownOutcome and ctx's error.
func (p *Pending[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-p.done:
		return p.value, p.outcome()
	case <-ctx.Done():
	}
	select {
	case <-p.done: // both at once: the outcome is more precise
		return p.value, p.outcome()
	default:
	}
	var zero T
	return zero, fmt.Errorf("%w: %w", zkerr.ErrUnknownOutcome, ctx.Err())
}

// outcome returns the request's error once it is done. It tells a closed client from a broken
// connection; the wire client does not.
func (p *Pending[T]) outcome() error {
	if p.err != nil && errors.Is(p.err, zkerr.ErrUnknownOutcome) && p.session.client.Err() != nil {
		return fmt.Errorf("%w: %w", zkerr.ErrClosed, p.err)
	}
	return p.err
}

// spawn runs fn on a goroutine that the client waits for, unless the client is closing.
func (s *Session) spawn(fn func()) bool {
	if !s.cfg.Client.Enter() {
		return false
	}
	go func() {
		defer s.cfg.Client.Leave()
		fn()
	}()
	return true
}
