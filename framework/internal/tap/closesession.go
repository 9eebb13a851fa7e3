package tap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

const (
	opCloseSession  = -11
	xidCloseSession = 1 // the connection's only request
)

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
	if len(answer) < greetingHead+lengthSize {
		return fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, len(answer))
	}
	switch got := int64At(answer, 8); got {
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
	if _, err := conn.Write(closeRequest()); err != nil {
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
		if len(reply) < replyHead {
			return fmt.Errorf("a reply of %d bytes", len(reply))
		}
		if int32At(reply, 0) != xidCloseSession {
			continue
		}
		if code := int32At(reply, 12); code != 0 && code != codeSessionExpired {
			return fmt.Errorf("the server's error %d", code)
		}
		return nil
	}
}

// resumption returns the handshake of a client that has seen nothing, which no
// server refuses for having seen less, and will do without a read-only server.
func resumption(id int64, password []byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(oldGreeting-passwordSize+len(password)+1))
	p = binary.BigEndian.AppendUint32(p, 0) // protocol version
	p = binary.BigEndian.AppendUint64(p, 0) // last zxid seen
	p = binary.BigEndian.AppendUint32(p, briefTimeout)
	p = binary.BigEndian.AppendUint64(p, uint64(id))
	p = binary.BigEndian.AppendUint32(p, uint32(len(password)))
	return append(append(p, password...), 0)
}

func closeRequest() []byte {
	p := binary.BigEndian.AppendUint32(nil, requestHead)
	p = binary.BigEndian.AppendUint32(p, xidCloseSession)
	closeOp := int32(opCloseSession)
	return binary.BigEndian.AppendUint32(p, uint32(closeOp))
}

// readFrame reads one frame of at most that many bytes, without its length.
func readFrame(conn io.Reader, most int32) ([]byte, error) {
	head := make([]byte, lengthSize)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	n := int32At(head, 0)
	if n < 0 || n > most {
		return nil, fmt.Errorf("%w: a frame of %d bytes", ErrHandshake, n)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(conn, frame)
	return frame, err
}
