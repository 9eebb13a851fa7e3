package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// MaxSmall is the length in bytes that the reply to a handshake may have, and any reply without data or names. A real reply
// to a handshake has 36 or 37 bytes. A longer one comes from another service on the port.
const MaxSmall = 1024

// MinTimeout is the shortest session timeout that a server may grant. go-zookeeper pings three times
// within it, and panics if it is not positive.
const MinTimeout = 10 * time.Millisecond

// lengthHTTP is what an HTTP server's answer begins with, read as a length.
const lengthHTTP = 'H'<<24 | 'T'<<16 | 'T'<<8 | 'P'

// An Identification is what a connection presents to the server ahead of all requests.
type Identification struct {
	SASL        Exchange // nil for none
	Credentials []Credential
}

// Connect makes the handshake on a new connection, authenticates it, and has it carry the session. It
// takes until ctx ends at the most, which must have a deadline. What it returns is for go-zookeeper. If
// it fails, the socket is closed. If the server refuses the client, the error wraps [ErrRefused]
// or [ErrCredential].
func (w *Wire) Connect(ctx context.Context, socket net.Conn, id Identification) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	_ = socket.SetDeadline(deadline) // a closed socket fails at the handshake, too
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	err := w.shakeHands(ctx, socket, id)
	if !stop() && err == nil { // ctx has ended, and the deadline may be set any moment
		err = context.Cause(ctx)
	}
	if err != nil {
		w.mu.Lock()
		w.fault = err
		w.mu.Unlock()
		_ = socket.Close() // the error that counts is err
		return nil, err
	}
	_ = socket.SetDeadline(time.Time{}) // the next read or write sets its own
	return w.install(socket)
}

// install makes a connection of the socket, the one in use.
func (w *Wire) install(socket net.Conn) (net.Conn, error) {
	w.mu.Lock()
	if ended := w.ended; ended != nil {
		w.mu.Unlock()
		_ = socket.Close() // the error that counts is the end
		return nil, ended
	}
	c := &Conn{
		wire: w, socket: socket, patience: w.about.timeout * 2 / 3, window: newWindow(w.about.timeout, &w.sizes),
		woken: make(chan struct{}, 1), ending: make(chan struct{}), ended: make(chan struct{}),
	}
	w.conn, w.fault = c, nil
	f := newFacade(c, w.about)
	w.dialler.latest = f
	w.mu.Unlock()
	if w.config.OnUp != nil {
		w.config.OnUp() // before OnDown
	}
	w.work.Add(2) // Retire waits for go-zookeeper first, which is in its dial function now
	go c.read()
	go c.write()
	return f, nil
}

// shakeHands is Connect up to the point where the connection is established.
func (w *Wire) shakeHands(ctx context.Context, socket net.Conn, id Identification) error {
	w.mu.Lock()
	hello := proto.ConnectRequest{
		Zxid: w.zxid, Timeout: int32(w.config.Timeout.Milliseconds()), Session: w.about.id, Password: w.about.password, ReadOnly: w.config.ReadOnly,
	}
	w.mu.Unlock()
	if hello.Session == 0 {
		hello.Password = make([]byte, proto.PasswordSize)
	}
	sent := time.Now()
	g, err := greet(socket, hello)
	if err == nil {
		err = g.acceptable(w.config.ReadOnly)
	}
	if err == nil && g.id != 0 && id.SASL != nil { // a server that says that the session has expired reads no more
		err = authenticate(ctx, socket, id.SASL)
	}
	if err == nil {
		err = w.record(sent, hello.Session == 0, g)
	}
	if err == nil {
		err = presentAll(socket, id.Credentials)
	}
	return err
}

// greet sends a handshake, and returns the reply.
func greet(server io.ReadWriter, hello proto.ConnectRequest) (identity, error) {
	if _, err := server.Write(hello.Frame()); err != nil {
		return identity{}, err
	}
	var head [proto.LengthSize]byte
	if _, err := io.ReadFull(server, head[:]); err != nil {
		return identity{}, err
	}
	length := int(int32(binary.BigEndian.Uint32(head[:])))
	switch {
	case length == lengthHTTP:
		return identity{}, fmt.Errorf("%w: an HTTP server answers", ErrHandshake)
	case length < 0 || length > MaxSmall:
		return identity{}, fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, length)
	}
	answer := make([]byte, length)
	if _, err := io.ReadFull(server, answer); err != nil {
		return identity{}, err
	}
	return parseGreeting(answer)
}

// parseGreeting parses protocol version, timeout in milliseconds, session id and password; from 3.4
// on a read-only flag follows.
func parseGreeting(answer []byte) (identity, error) {
	d := proto.NewDecoder(answer)
	if head := d.ReplyHead(); len(answer) == proto.ReplyHeadSize && head.Code == proto.CodeNotReadOnly {
		return identity{}, ErrNoLocalSession
	}
	d = proto.NewDecoder(answer)
	reply := d.ConnectReply()
	if d.Err() != nil {
		return identity{}, fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, len(answer))
	}
	return identity{
		timeout:  time.Duration(reply.Timeout) * time.Millisecond,
		id:       reply.Session,
		password: bytes.Clone(reply.Password),
		readOnly: reply.ReadOnly,
	}, nil
}

// acceptable returns what is wrong with a greeting, or nil.
func (g identity) acceptable(readOnly bool) error {
	switch {
	case g.id == 0:
	case g.timeout < MinTimeout:
		return fmt.Errorf("%w: it grants a session timeout of %v", ErrHandshake, g.timeout)
	case len(g.password) != proto.PasswordSize:
		return fmt.Errorf("%w: its password has %d bytes", ErrHandshake, len(g.password))
	case g.readOnly && !readOnly:
		return fmt.Errorf("%w: a read-only server, which was not asked for", ErrHandshake)
	}
	return nil
}

// record records the reply to a handshake that was sent at sent. isNew says whether it asked for a new
// session.
func (w *Wire) record(sent time.Time, isNew bool, g identity) error {
	if w.config.OnHandshake != nil {
		defer w.config.OnHandshake() // behind the following Unlock
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended != nil:
		return w.ended
	case g.id == 0:
		w.ended = ErrExpired
		return w.ended
	case w.about.id != 0 && w.about.id != g.id:
		w.ended = fmt.Errorf("%w: %#x instead of %#x", ErrSubstituted, g.id, w.about.id)
		return w.ended
	}
	if w.about.timeout > 0 { // a new leader uses the timeout that the session began with
		g.timeout = min(g.timeout, w.about.timeout)
	}
	w.about = g
	w.clock.handshake(sent, isNew && !g.readOnly, g.timeout, w.config.MarginFor(g.timeout))
	w.settleLocked()
	return nil
}
