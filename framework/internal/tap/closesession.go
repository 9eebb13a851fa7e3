package tap

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/docent-go/docent/internal/proto"
)

const xidCloseSession = 1 // the connection's only request

// briefTimeout is the session timeout in milliseconds that [CloseSession] asks for. The server
// grants its minimum. So if the attempt fails after the handshake, which renews the session, the
// session is renewed only for that minimum.
const briefTimeout = 1

// CloseSession ends a session at the server, over a connection that is used only for that. It
// authenticates the connection by sasl unless that is nil, which may take until ctx ends, and by the
// credentials. It returns nil if the session is over: the server has closed it or no longer knows it.
// It neither sets deadlines nor closes conn.
//
// If the server replies with another session, CloseSession does not close that session, and the
// error wraps [ErrSubstituted]. If the server refuses a credential, the error wraps
// [ErrCredential].
func CloseSession(ctx context.Context, conn net.Conn, sasl Exchange, credentials []Credential, id int64, password []byte) error {
	if _, err := conn.Write(resumption(id, password)); err != nil {
		return err
	}
	answer, err := readFrame(conn, MaxHandshake)
	if err != nil {
		return err
	}
	d := proto.NewDecoder(answer)
	reply := d.ConnectReply()
	if d.Err() != nil {
		return fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, len(answer))
	}
	switch got := reply.Session; got {
	case 0:
		return nil // it has expired
	case id:
	default:
		return fmt.Errorf("%w: %#x instead of %#x", ErrSubstituted, got, id)
	}
	if sasl != nil {
		if err := authenticate(ctx, conn, sasl); err != nil {
			return err
		}
	}
	for _, credential := range credentials {
		if accepted, err := present(conn, credential); err != nil || !accepted {
			return errors.Join(ErrCredential, err)
		}
	}
	if _, err := conn.Write(proto.RequestFrame(xidCloseSession, proto.OpCloseSession, nil)); err != nil {
		return err
	}
	return readCloseReply(conn)
}

// readCloseReply reads until the reply to the close.
func readCloseReply(conn net.Conn) error {
	for {
		reply, err := readFrame(conn, MaxHandshake)
		if err != nil {
			return err
		}
		d := proto.NewDecoder(reply)
		head := d.ReplyHead()
		if d.Err() != nil {
			return fmt.Errorf("a reply of %d bytes", len(reply))
		}
		if head.Xid != xidCloseSession {
			continue
		}
		if head.Code != 0 && head.Code != proto.CodeSessionExpired {
			return fmt.Errorf("the server's error %d", head.Code)
		}
		return nil
	}
}

// resumption returns the handshake of a client that has seen no transaction, so no server refuses
// it as older than the client. A read-only server does not suffice.
func resumption(id int64, password []byte) []byte {
	return proto.ConnectRequest{Timeout: briefTimeout, Session: id, Password: password}.Frame()
}
