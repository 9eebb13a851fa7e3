package tap

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// MaxHandshake is the length in bytes that a reply to a handshake may have. A real reply has 36 or
// 37 bytes. A longer one comes from another service on the port, and the wire client would allocate
// as many bytes as it announces.
const MaxHandshake = 1024

// MinTimeout is the shortest session timeout that a server may grant. The wire client pings
// three times within it, and panics if it is not positive.
const MinTimeout = 10 * time.Millisecond

// A greeting is a server's reply to a handshake.
type greeting struct {
	timeout  time.Duration
	id       int64 // 0 if the session has expired: then the rest has no meaning
	password []byte
	readOnly bool // the server has lost its quorum
}

// parseGreeting parses protocol version, timeout in milliseconds, session id and password; from 3.4
// on a read-only flag follows.
func parseGreeting(answer []byte) (greeting, error) {
	if len(answer) == proto.ReplyHeadSize && replyOf(answer).code == proto.CodeNotReadOnly {
		return greeting{}, ErrNoLocalSession
	}
	d := proto.NewDecoder(answer)
	reply := d.ConnectReply()
	if d.Err() != nil {
		return greeting{}, fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, len(answer))
	}
	return greeting{
		timeout:  time.Duration(reply.Timeout) * time.Millisecond,
		id:       reply.Session,
		password: bytes.Clone(reply.Password),
		readOnly: reply.ReadOnly,
	}, nil
}

// greetedBy records the reply to the handshake.
func (c *Conn) greetedBy(answer []byte) error {
	g, err := parseGreeting(answer)
	if err != nil {
		return err
	}
	c.tap.mu.Lock()
	sent, isNew := c.sentAt, c.begins
	c.tap.mu.Unlock()
	switch {
	case sent.IsZero():
		return fmt.Errorf("%w: an answer before the question", ErrHandshake)
	case g.id == 0:
	case g.timeout < MinTimeout:
		return fmt.Errorf("%w: it grants a session timeout of %v", ErrHandshake, g.timeout)
	case len(g.password) != proto.PasswordSize:
		return fmt.Errorf("%w: its password has %d bytes", ErrHandshake, len(g.password))
	case g.readOnly && !c.tap.config.ReadOnly:
		return fmt.Errorf("%w: a read-only server, which was not asked for", ErrHandshake)
	}
	if g.id != 0 && c.authenticate != nil { // a server that says that the session has expired reads no more
		if err := c.authenticate(); err != nil {
			return err
		}
	}
	err = c.tap.handshake(sent, isNew, g)
	if err == nil && g.id != 0 {
		err = c.presentAll()
	}
	if err == nil {
		c.frameTime = frameTime(g.timeout)
		_ = c.Conn.SetDeadline(time.Time{}) // the next read or write sets its own
		c.startWriter()
		c.established.Store(true)
	}
	return err
}

// completeGreeting adds a flag that servers from 3.4 on expect at the end of a handshake: whether a
// server without a quorum suffices. Without the flag they log a warning. A server that is behind zxid, the
// latest that the session has seen, has to refuse the connection: the wire client knows no reply to a
// [Request].
func completeGreeting(p []byte, readOnly bool, zxid int64) []byte {
	if len(p) != proto.LengthSize+oldGreeting || int32At(p, 0) != oldGreeting {
		return p
	}
	flag := byte(0)
	if readOnly {
		flag = 1
	}
	p = append(append(make([]byte, 0, len(p)+1), p...), flag)
	binary.BigEndian.PutUint32(p, oldGreeting+1)
	if zxid > int64At(p, greetingZxid) {
		binary.BigEndian.PutUint64(p[greetingZxid:], uint64(zxid))
	}
	return p
}

// UseSASL makes the connection authenticate by e before the wire client gets the reply to its
// handshake, and within the handshake's deadline. If ctx ends first, the connection fails. UseSASL has
// to be called before the connection is used.
func (c *Conn) UseSASL(ctx context.Context, e Exchange) {
	c.authenticate = func() error {
		ctx, cancel := context.WithDeadline(ctx, c.deadline)
		defer cancel()
		return authenticate(ctx, c.raw(), e)
	}
}

// UseCredentials makes the connection present the credentials, in that order. It presents them
// before the wire client gets the reply to its handshake, and within the handshake's deadline. So
// no request precedes them. UseCredentials has to be called before the connection is used.
func (c *Conn) UseCredentials(credentials []Credential) { c.credentials = credentials }

// presentAll presents the credentials of the connection until the server refuses one.
func (c *Conn) presentAll() error {
	for _, credential := range c.credentials {
		accepted, err := present(c.raw(), credential)
		if err != nil {
			return err
		}
		if credential.Answered != nil {
			credential.Answered(accepted)
		}
		if !accepted {
			c.refusedBy(credential.Answered != nil)
			return nil // the wire client has to get the session
		}
	}
	return nil
}

// refusedBy records that the server refused a credential.
func (c *Conn) refusedBy(trial bool) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.refusal = ErrCredential
	if trial {
		c.refusal = ErrTrial
	}
}

// raw returns the stream below the frames that the wire client sees.
func (c *Conn) raw() io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{c.reader.socket, c.Conn}
}
