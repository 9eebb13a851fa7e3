package zktest

import (
	"encoding/binary"
	"fmt"
	"io"
)

// maxFrame bounds a frame that is read here; a handshake's answer has 37 bytes.
const maxFrame = 1 << 20

// A handshake is what client and server tell each other first. The client's has
// the last zxid it has seen, which is 0 here, between version and timeout.
type handshake struct {
	timeout  int32 // milliseconds; 0 from the server: refused
	session  int64 // 0 from the client: a new one
	password []byte
}

// request returns the handshake's frame as a client sends it.
func (h handshake) request() []byte {
	body := binary.BigEndian.AppendUint32(nil, 0) // protocol version
	body = binary.BigEndian.AppendUint64(body, 0) // last zxid seen
	body = binary.BigEndian.AppendUint32(body, uint32(h.timeout))
	body = binary.BigEndian.AppendUint64(body, uint64(h.session))
	body = binary.BigEndian.AppendUint32(body, uint32(len(h.password)))
	body = append(body, h.password...)
	return frame(append(body, 0)) // may be sent to a read-only server: no
}

// parseAnswer reads the body of a server's handshake.
func parseAnswer(body []byte) (handshake, error) {
	const fixed = 4 + 4 + 8 + 4 // version, timeout, session, length of the password
	if len(body) < fixed {
		return handshake{}, fmt.Errorf("zktest: handshake of %d bytes: must have at least %d", len(body), fixed)
	}
	h := handshake{
		timeout: int32(binary.BigEndian.Uint32(body[4:])),
		session: int64(binary.BigEndian.Uint64(body[8:])),
	}
	n, rest := int(int32(binary.BigEndian.Uint32(body[16:]))), body[fixed:]
	if n < 0 || n > len(rest) {
		return handshake{}, fmt.Errorf("zktest: handshake with a password of %d bytes: %d left", n, len(rest))
	}
	h.password = rest[:n]
	return h, nil
}

// closeSession is the request that ends a session; it has no body.
const (
	closeSession    = -11
	closeSessionXid = 1
)

func closeSessionRequest() []byte {
	code := int32(closeSession)
	body := binary.BigEndian.AppendUint32(nil, closeSessionXid)
	return frame(binary.BigEndian.AppendUint32(body, uint32(code)))
}

// replyXid returns which request a reply answers; watch events and pings have
// negative numbers.
func replyXid(body []byte) (int32, error) {
	const header = 4 + 8 + 4 // xid, zxid, error
	if len(body) < header {
		return 0, fmt.Errorf("zktest: reply of %d bytes: must have at least %d", len(body), header)
	}
	return int32(binary.BigEndian.Uint32(body)), nil
}

func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxFrame {
		return nil, fmt.Errorf("zktest: frame of %d bytes: must have at most %d", n, maxFrame)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}
