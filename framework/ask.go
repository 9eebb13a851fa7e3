package framework

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/proto"
)

// unsupportedFor is how long a server that does not know an opcode is not asked
// again. Each time costs the connection; a server may be replaced by a newer one.
const unsupportedFor = 10 * time.Minute

// An unsupported keeps what servers have said that they do not know.
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

// ask sends a request by the tap and returns the body of the answer, or an error of
// this package. It waits until ctx ends.
func (s *session) ask(ctx context.Context, opcode proto.Opcode, body []byte) ([]byte, error) {
	server := s.serverAddr()
	if s.core.unsupported.has(server, opcode) {
		return nil, fmt.Errorf("%w %s", ErrUnsupported, server)
	}
	answer, err := call(ctx, s, func(*wire) (tap.Answer, error) {
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
	return answer.Body, codeError(answer.Code)
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

// codeError returns the error for a code that a server gave a request of the tap's.
func codeError(code proto.Code) error {
	switch code {
	case 0:
		return nil
	case proto.CodeThrottled:
		return fmt.Errorf("%w: the server sheds load", ErrNotConnected)
	case proto.CodeAuthRequired:
		return fmt.Errorf("%w: the server requires another one", ErrAuthFailed)
	case proto.CodeSessionExpired, proto.CodeSessionMoved:
		return fmt.Errorf("%w: code %d", ErrUnknownOutcome, code)
	case proto.CodeNotReadOnly:
		return ErrReadOnly
	case proto.CodeBadArguments:
		return ErrBadArguments
	case proto.CodeNoQuorum:
		return ErrNoQuorum
	case proto.CodeInProgress:
		return ErrReconfigInProgress
	case proto.CodeNoAuth:
		return ErrNoAuth
	case proto.CodeBadVersion:
		return ErrBadVersion
	case proto.CodeReconfigDisabled:
		return ErrReconfigDisabled
	}
	return serverError{strconv.Itoa(int(code))}
}
