package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// Present presents a credential on the present connection, and returns whether the server accepts it.
// With an error there was no reply.
// The connection need not serve yet.
func (s *Session) Present(ctx context.Context, scheme string, secret []byte) (accepted bool, err error) {
	rq := &wire.Request{Opcode: proto.OpAuth, Body: wire.CredentialBody(scheme, secret), Limit: wire.MaxSmall, Class: wire.Proof}
	s.wire.Send(rq)
	select {
	case <-rq.Done():
	case <-ctx.Done():
		return false, ctx.Err()
	}
	answer, err := rq.Answer()
	return answer.Code == proto.CodeOK, askError(err)
}

// askError translates an error of [wire.Request.Answer].
func askError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wire.ErrUnsent):
		return zkerr.ErrNotConnected
	case errors.Is(err, wire.ErrWithdrawn):
		return zkerr.ErrNotSent
	case errors.Is(err, wire.ErrTooLarge), errors.Is(err, wire.ErrRequestTooLarge):
		return fmt.Errorf("%w: %s", zkerr.ErrTooLarge, err.Error())
	}
	return fmt.Errorf("%w: %s", zkerr.ErrUnknownOutcome, err.Error())
}

// AwaitReply returns nil once a server has replied in this session: [Session.Zxid] is known. Of its callers, one at
// a time asks for a reply.
func (s *Session) AwaitReply(ctx context.Context) error {
	if s.Zxid() != 0 {
		return nil
	}
	select {
	case s.first <- struct{}{}:
		defer func() { <-s.first }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.Zxid() != 0 {
		return nil
	}
	return Effect(ctx, s, requests.Touch())
}

// probe sends a request on a connection that has not served yet. After a refusal, it finds out
// whether the server refuses further requests. If a server requires an identity that the client
// does not have, it says so at the first request and closes the connection.
func (s *Session) probe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent.probe {
		return
	}
	s.sent.probe = s.cfg.Client.Spawn(func() { // ends with the reply or the connection
		answer, err := s.wire.Ask(&wire.Request{
			Opcode: proto.OpExists, Body: append(proto.AppendString(nil, "/"), 0), Limit: wire.MaxSmall, Class: wire.Proof,
		})
		s.mu.Lock()
		s.sent.probe, s.probed = false, err == nil && answer.Code != proto.CodeAuthRequired
		s.mu.Unlock()
		if err == nil { // else the end of the connection wakes the loop
			s.Wake()
		}
	})
}

// accepted reports whether the server has answered a probe.
func (s *Session) accepted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.probed
}
