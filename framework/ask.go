package framework

import (
	"context"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// ask sends a request that the wire client does not know, and returns the body of the reply. It
// waits until ctx ends.
func ask(ctx context.Context, s *session.Session, opcode proto.Opcode, body []byte) ([]byte, error) {
	return session.Call(ctx, s, func(*zkconn.Conn) ([]byte, error) { return s.Ask(opcode, body) })
}
