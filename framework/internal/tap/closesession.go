package tap

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/docent-go/docent/internal/proto"
)

const xidCloseSession = 1 // the connection's only request

// briefTimeout is the session timeout in milliseconds that [CloseSession] asks
// for. The server grants the least that it allows: if the attempt breaks off after
// the handshake, which renews the session, it is renewed for no longer than that.
const briefTimeout = 1

// CloseSession ends a session at the server, over a connection that carries it for
// that alone, authenticated by sasl unless that is nil, and by the credentials. It returns nil if
// the session is over: the server has closed it or knows it no more. It neither sets deadlines
// nor closes conn. If the server answers with another session, CloseSession leaves that alone,
// and the error wraps [ErrSubstituted]; if it refuses a credential, the error wraps
// [ErrCredential].
func CloseSession(conn net.Conn, sasl Exchange, credentials []Credential, id int64, password []byte) error {
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
		if err := authenticate(conn, sasl); err != nil {
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

// readCloseReply reads until the close has been answered.
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

// resumption returns the handshake of a client that has seen nothing, which no
// server refuses for having seen less, and will do without a read-only server.
func resumption(id int64, password []byte) []byte {
	return proto.ConnectRequest{Timeout: briefTimeout, Session: id, Password: password}.Frame()
}

// readFrame reads one frame of at most that many bytes, without its length.
func readFrame(conn io.Reader, most int) ([]byte, error) {
	frame, err := proto.ReadFrame(conn, most)
	if errors.Is(err, proto.ErrMalformed) {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	return frame, err
}
