package session

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// unsupportedFor is for how long the client does not send an opcode again to a server that does not
// know it. Each such request costs the connection. A newer server may replace the server.
const unsupportedFor = 10 * time.Minute

// An Unsupported keeps which opcodes the servers do not know.
type Unsupported struct {
	mu   sync.Mutex // guards following
	said map[unknownOpcode]time.Time
}

type unknownOpcode struct {
	server string
	opcode proto.Opcode
}

func (u *Unsupported) add(server string, opcode proto.Opcode) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.said == nil {
		u.said = make(map[unknownOpcode]time.Time)
	}
	u.said[unknownOpcode{server, opcode}] = time.Now()
}

func (u *Unsupported) has(server string, opcode proto.Opcode) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, said := u.said[unknownOpcode{server, opcode}]
	return said && time.Since(at) < unsupportedFor
}

// Ask sends a request that the wire client does not know, and returns the body of the reply or an
// error of package zkerr. It returns with the reply or the end of the connection.
func (s *Session) Ask(opcode proto.Opcode, body []byte) ([]byte, error) {
	server := s.ServerAddr()
	if s.cfg.Unsupported.has(server, opcode) {
		return nil, fmt.Errorf("%w %s", zkerr.ErrUnsupported, server)
	}
	answer, err := s.tap.Ask(opcode, body, s.cfg.MaxReply)
	if err != nil {
		return nil, askError(err)
	}
	if answer.Code == proto.CodeUnimplemented {
		s.cfg.Unsupported.add(server, opcode)
		return nil, fmt.Errorf("%w %s", zkerr.ErrUnsupported, server)
	}
	return answer.Body, zkerr.OfCode(answer.Code)
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
