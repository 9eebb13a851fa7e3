package wire

import (
	"context"
	"fmt"
	"net"

	"github.com/docent-go/docent/internal/proto"
)

const xidCloseSession = 1 // the connection's only request

// briefTimeout is the session timeout in milliseconds that [CloseSession] asks for. The server
// grants its minimum. So if the attempt fails after the handshake, which renews the session, the
// session is renewed only for that minimum.
const briefTimeout = 1

// CloseSession asks the server of the connection in use to end the session, ahead of all requests that
// wait, and returns nil if it has. Without a connection the error is [ErrUnsent]. It may be called when the
// Wire has ended.
func (w *Wire) CloseSession(ctx context.Context) error {
	rq := &Request{Opcode: proto.OpCloseSession, Class: Closing, Limit: MaxSmall}
	w.Send(rq)
	select {
	case <-rq.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	answer, err := rq.Answer()
	if err != nil {
		return err
	}
	return closed(answer.Code)
}

// closed returns the error of a reply to the close of a session.
func closed(code proto.Code) error {
	if code == proto.CodeOK || code == proto.CodeSessionExpired {
		return nil
	}
	return fmt.Errorf("the server's error %d", code)
}

// CloseSession ends a session at the server, over a connection that is used only for that. It
// authenticates the connection by sasl unless that is nil, which may take until ctx ends, and by the
// credentials. It returns nil if the session is over: the server has closed it or no longer knows it.
// It neither sets deadlines nor closes conn.
//
// If the server replies with another session, CloseSession does not close that session, and the
// error wraps [ErrSubstituted]. If the server refuses a credential, the error wraps
// [ErrCredential].
func CloseSession(ctx context.Context, conn net.Conn, id Identification, session int64, password []byte) error {
	// The handshake of a client that has seen no transaction: no server refuses it as older than the
	// client. A read-only server does not suffice.
	g, err := greet(conn, proto.ConnectRequest{Timeout: briefTimeout, Session: session, Password: password})
	if err != nil {
		return err
	}
	switch g.id {
	case 0:
		return nil // it has expired
	case session:
	default:
		return fmt.Errorf("%w: %#x instead of %#x", ErrSubstituted, g.id, session)
	}
	if id.SASL != nil {
		if err := authenticate(ctx, conn, id.SASL); err != nil {
			return err
		}
	}
	if err := presentAll(conn, id.Credentials); err != nil {
		return err
	}
	reply, _, err := ask(conn, xidCloseSession, proto.OpCloseSession, nil, MaxSmall)
	if err != nil {
		return err
	}
	return closed(reply.Code)
}
