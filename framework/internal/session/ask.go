package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// Ask sends a request that the wire client does not know, or must not keep: it is sent on the connection in
// use, or not at all. Ask returns the body of the reply or an error of package zkerr. It returns with the
// reply or the end of the connection.
func (s *Session) Ask(opcode proto.Opcode, body []byte) ([]byte, error) {
	return s.AskUpTo(s.cfg.MaxReply, opcode, body)
}

// AskUpTo is Ask for a request whose reply may have a body of limit bytes.
func (s *Session) AskUpTo(limit int, opcode proto.Opcode, body []byte) ([]byte, error) {
	server := s.ServerAddr()
	answer, err := s.tap.Ask(opcode, body, limit)
	if errors.Is(err, tap.ErrUnknownOpcode) || err == nil && answer.Code == proto.CodeUnimplemented {
		return nil, fmt.Errorf("%w %s", zkerr.ErrUnsupported, server)
	}
	if errors.Is(err, tap.ErrTooLarge) && tap.Proposed(opcode) { // it may have had its effect
		return nil, fmt.Errorf("%w: %w", zkerr.ErrUnknownOutcome, askError(err))
	}
	if err != nil {
		return nil, askError(err)
	}
	return answer.Body, zkerr.OfCode(answer.Code)
}

// DeleteNow deletes a znode that the caller has read, to know that it is the right one. The request is
// sent on the connection in use, or not at all. The wire client would keep it while there is no
// connection, and send it on the next one, when another znode may be at the path.
func (s *Session) DeleteNow(ctx context.Context, path string, version int32) error {
	body := binary.BigEndian.AppendUint32(proto.AppendString(nil, path), uint32(version))
	return Effect(ctx, s, func(*zkconn.Conn) error {
		_, err := s.Ask(proto.OpDelete, body)
		return err
	})
}

// Present presents a credential on the present connection, and returns whether the server accepts it.
// With an error there was no reply.
func (s *Session) Present(scheme string, secret []byte) (accepted bool, err error) {
	answer, err := s.tap.Ask(proto.OpAuth, tap.CredentialBody(scheme, secret), maxAuthReply)
	return answer.Code == proto.CodeOK, askError(err)
}

// maxAuthReply is more than the length of a server's reply to a credential.
const maxAuthReply = 1 << 10

// askError translates an error of [tap.Tap.Ask].
func askError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tap.ErrUnsent):
		return zkerr.ErrNotConnected
	case errors.Is(err, tap.ErrTooLarge):
		return fmt.Errorf("%w: %s", zkerr.ErrTooLarge, err.Error())
	}
	return fmt.Errorf("%w: %s", zkerr.ErrUnknownOutcome, err.Error())
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
	s.sent.probe = s.spawn(func() { // ends with the reply or the connection
		answer, err := s.tap.Ask(proto.OpExists, append(proto.AppendString(nil, "/"), 0), probeLimit)
		s.mu.Lock()
		s.sent.probe, s.heard = false, err == nil && answer.Code != proto.CodeAuthRequired
		s.mu.Unlock()
		if err == nil { // else the end of the connection wakes the loop
			s.Wake()
		}
	})
}

// probeLimit is more than the length of the Stat in the reply to a probe.
const probeLimit = 1 << 10

// accepted reports whether the server has answered a probe.
func (s *Session) accepted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}
