package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// unsupportedFor is for how long the client does not send an opcode again to a server that does not
// know it. Each such request costs the connection. A newer server may replace the server.
const unsupportedFor = 10 * time.Minute

// An unsupported keeps which opcodes the servers do not know.
type unsupported struct {
	mu   sync.Mutex // guards following
	said map[unknownOpcode]time.Time
}

type unknownOpcode struct {
	server string
	opcode proto.Opcode
}

func (u *unsupported) add(server string, opcode proto.Opcode) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.said == nil {
		u.said = make(map[unknownOpcode]time.Time)
	}
	u.said[unknownOpcode{server, opcode}] = time.Now()
}

func (u *unsupported) has(server string, opcode proto.Opcode) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, said := u.said[unknownOpcode{server, opcode}]
	return said && time.Since(at) < unsupportedFor
}

// ask sends a request by the tap and returns the body of the reply, or an error of this package. It
// waits until ctx ends.
func (s *session) ask(ctx context.Context, opcode proto.Opcode, body []byte) ([]byte, error) {
	server := s.ServerAddr()
	if s.core.unsupported.has(server, opcode) {
		return nil, fmt.Errorf("%w %s", ErrUnsupported, server)
	}
	answer, err := call(ctx, s, func(*zkconn.Conn) (tap.Answer, error) {
		answer, err := s.tap.Ask(opcode, body, s.core.cfg.maxReply)
		return answer, askError(err)
	})
	if err != nil {
		return nil, err
	}
	if answer.Code == proto.CodeUnimplemented {
		s.core.unsupported.add(server, opcode)
		return nil, fmt.Errorf("%w %s", ErrUnsupported, server)
	}
	return answer.Body, zkerr.OfCode(answer.Code)
}

// askError translates an error of [tap.Tap.Ask].
func askError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tap.ErrUnsent):
		return ErrNotConnected
	case errors.Is(err, tap.ErrTooLarge):
		return fmt.Errorf("%w: %s", ErrTooLarge, err.Error())
	}
	return fmt.Errorf("%w: %s", ErrUnknownOutcome, err.Error())
}
