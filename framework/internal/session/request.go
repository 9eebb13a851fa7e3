package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// A Pending is a request that waits to be sent, was sent, or could not be sent. It ends with the reply or the
// connection, or is withdrawn.
type Pending[T any] struct {
	session  *Session
	callers  atomic.Int32 // that may wait for it
	request  wire.Request
	decode   func(wire.Answer) (T, error)
	answered func(T) // is told of the value before any caller has it; may be nil

	decoding sync.Once
	value    T
	err      error
}

// Begin sends a request on the connection in use, or not at all. It does not wait: the request goes out once
// the connection has room for it. A server serves a session's requests of one class in the order in which
// Begin is called, but for what [wire.Call] says.
func Begin[T any](s *Session, rq requests.Request[T]) *Pending[T] {
	limit := rq.Limit
	if limit == 0 {
		limit = max(s.cfg.MaxReply, rq.Expect.Bytes)
	}
	p := &Pending[T]{session: s, decode: rq.Decode, answered: rq.Answered}
	p.request = wire.Request{
		Opcode: rq.Opcode, Body: rq.Body, Watch: rq.Watch, Limit: limit, Expect: rq.Expect, Reads: rq.Reads, Read: rq.Read, Class: rq.Class, Call: rq.Call, By: rq.By, Owner: p,
	}
	p.callers.Store(1)
	switch {
	case proto.RequestHeadSize+len(rq.Body) > s.cfg.MaxRequest:
		p.request.Refuse(fmt.Errorf("%w: %d bytes", wire.ErrRequestTooLarge, len(rq.Body)))
	case s.client.Err() != nil || !s.Enter():
		p.request.Refuse(wire.ErrUnsent)
	case !s.wire.Send(&p.request):
		s.Leave()
	}
	return p
}

// Ended is called when the request was sent and has ended.
func (p *Pending[T]) Ended() {
	p.session.Leave()
	if p.answered != nil {
		_, _ = p.outcome() // calls answered, before the next reply is read
	}
}

// Call is Begin and [Pending.Wait]. If ctx has ended before, nothing is sent, and the error is ctx's.
func Call[T any](ctx context.Context, s *Session, rq requests.Request[T]) (T, error) {
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, err
	}
	rq.By, _ = ctx.Deadline()
	return Begin(s, rq).Wait(ctx)
}

// Effect is Call for a request that has no result.
func Effect(ctx context.Context, s *Session, rq requests.Request[struct{}]) error {
	_, err := Call(ctx, s, rq)
	return err
}

// Done returns a channel that is closed when the request has an outcome.
func (p *Pending[T]) Done() <-chan struct{} { return p.request.Done() }

// Wait returns the request's outcome; its errors are package zkerr's. If ctx ends first, the error wraps ctx's
// error, and zkerr.ErrUnknownOutcome if the request was sent, or zkerr.ErrNotSent if it was not.
func (p *Pending[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-p.request.Done():
		return p.outcome()
	case <-ctx.Done():
	}
	select {
	case <-p.request.Done(): // both at once: the outcome is more precise
		return p.outcome()
	default:
	}
	reason := zkerr.ErrUnknownOutcome
	if p.Withdraw() {
		reason = zkerr.ErrNotSent
	}
	var zero T
	return zero, fmt.Errorf("%w: %w", reason, ctx.Err())
}

// Join adds a caller that waits too, and whose own withdrawal it then takes.
func (p *Pending[T]) Join() { p.callers.Add(1) }

// Withdraw removes a caller. The last one takes the request back, if it was not sent yet. Withdraw reports
// whether it did.
func (p *Pending[T]) Withdraw() bool {
	return p.callers.Add(-1) <= 0 && p.session.wire.Withdraw(&p.request)
}

// outcome returns the outcome of a request that has ended.
func (p *Pending[T]) outcome() (T, error) {
	p.decoding.Do(func() {
		answer, err := p.request.Answer()
		if err = p.session.fault(p.request.Opcode, answer, err); err != nil {
			p.err = err
			return
		}
		p.value, p.err = p.decode(answer)
		if errors.Is(p.err, requests.ErrMalformed) { // what else it sends can't be trusted, either
			p.session.wire.CloseConn(p.err)
			p.err = fmt.Errorf("%w: %s", zkerr.ErrUnknownOutcome, p.err.Error())
		}
		if p.err == nil && p.answered != nil {
			p.answered(p.value)
		}
	})
	return p.value, p.err
}

// fault returns the error of a request whose answer does not count, else nil.
func (s *Session) fault(opcode proto.Opcode, answer wire.Answer, err error) error {
	switch {
	case s.client.Err() != nil && errors.Is(err, wire.ErrUnsent):
		return zkerr.ErrClosed
	case s.client.Err() != nil && errors.Is(err, wire.ErrUnanswered):
		return fmt.Errorf("%w: %w", zkerr.ErrClosed, askError(err))
	case err == nil && answer.Code == proto.CodeUnimplemented:
		return requests.Unsupported(opcode, s.ServerAddr())
	case errors.Is(err, wire.ErrTooLarge) && wire.Proposed(opcode): // it may have had its effect
		return fmt.Errorf("%w: %w", zkerr.ErrUnknownOutcome, askError(err))
	}
	return askError(err)
}
