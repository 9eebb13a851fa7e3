package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/proto"
)

// This file alone knows go-zookeeper. It has a goroutine that dials, by a function of the session's, and for each
// connection one that pings and one that waits for the connection's end.

// A dialler is go-zookeeper's part of a Wire.
type dialler struct {
	client *zk.Conn
	events <-chan zk.Event // closed when the client's goroutines have ended
	latest *facade         // of the latest connection; nil before the first; guarded by Wire.mu
	last   *facade         // what go-zookeeper gets once the session is over; immutable
}

// bufferSize is that of go-zookeeper's two buffers, in bytes: it has handshakes and pings alone.
const bufferSize = 512

// Start makes go-zookeeper dial, at once, and again whenever a connection has ended. dial pauses and
// connects; it returns what [Wire.Connect] returns. Once the session is over, dial returns [Wire.Over].
func (w *Wire) Start(dial func() (net.Conn, error), log *zap.Logger) (err error) {
	w.dialler.last = newFacade(nil, identity{id: 1, password: make([]byte, proto.PasswordSize), timeout: time.Hour})
	w.dialler.client, w.dialler.events, err = zk.Connect([]string{ensemble}, w.config.Timeout,
		zk.WithHostProvider(host{}),
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return dial() }),
		zk.WithLogger(logger{log.Sugar()}),
		zk.WithLogInfo(false),
		zk.WithMaxBufferSize(bufferSize),
		zk.WithMaxConnBufferSize(bufferSize),
	)
	if err != nil {
		return fmt.Errorf("go-zookeeper: %s", err.Error())
	}
	return nil
}

// Over returns what go-zookeeper gets for a connection once the session is over: it waits there for its end.
func (w *Wire) Over() net.Conn { return w.dialler.last }

// Retire ends the connection, go-zookeeper, and all goroutines and sockets of the Wire, and waits for them.
// The dial function must not wait any more. go-zookeeper's Close waits for the reply to a close that it
// sends, and for a second if no connection takes that. So Retire waits until there is a facade to take it.
func (w *Wire) Retire(cause error) {
	w.End(cause)
	w.mu.Lock()
	latest := w.dialler.latest
	w.mu.Unlock()
	if latest == nil || !latest.keep() {
		latest = w.dialler.last
	}
	w.CloseConn(cause)
	<-latest.greeted
	w.dialler.client.Close()
	for range w.dialler.events {
	}
	w.work.Wait()
}

// ensemble is the host to which go-zookeeper connects. Only the dial function knows the real address.
const ensemble = "ensemble"

// A host is go-zookeeper's provider of hosts.
type host struct{}

func (host) Init([]string) error  { return nil }
func (host) Len() int             { return 1 }
func (host) Next() (string, bool) { return ensemble, false }
func (host) Connected()           {}

// A logger logs what go-zookeeper prints: failed attempts to connect.
type logger struct{ log *zap.SugaredLogger }

func (l logger) Printf(format string, args ...any) { l.log.Debugf("wire client: "+format, args...) }

// A facade is what go-zookeeper gets for a connection. Of its frames, the hello is dropped, because the
// hands are shaken; the greeting is replayed; a ping makes the connection ping; and a close is answered,
// because the session closes itself. A Read blocks until the connection has ended.
type facade struct {
	conn *Conn         // nil if the session is over: go-zookeeper waits for its own end
	more chan struct{} // capacity 1: unread has something

	mu      sync.Mutex    // guards following
	unread  []byte        // the greeting, and then the reply to the close
	greeted chan struct{} // closed when the greeting has been read
	read    sync.Once     // closes greeted
	hello   bool          // go-zookeeper has written its hello
	kept    bool          // it goes on when conn has ended
	ended   bool          // Read has returned the end
}

func newFacade(c *Conn, about identity) *facade {
	greeting := proto.ConnectReply{Timeout: int32(about.timeout.Milliseconds()), Session: about.id, Password: about.password}
	return &facade{conn: c, more: make(chan struct{}, 1), unread: greeting.Frame(), greeted: make(chan struct{}), kept: c == nil}
}

// keep makes the facade go on when its connection has ended. It returns false if go-zookeeper has learned
// of that end already: it is to dial again.
func (f *facade) keep() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = !f.ended
	return f.kept
}

// Read is part of net.Conn, as the following methods are.
func (f *facade) Read(p []byte) (int, error) {
	for {
		if n := f.take(p); n > 0 {
			return n, nil
		}
		var ended <-chan struct{}
		if f.conn != nil {
			ended = f.conn.ended
		}
		select {
		case <-f.more:
			continue
		case <-ended:
		}
		if f.ends() {
			return 0, io.EOF
		}
		<-f.more
	}
}

// take takes what go-zookeeper is to read.
func (f *facade) take(p []byte) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := copy(p, f.unread)
	f.unread = f.unread[n:]
	if len(f.unread) == 0 {
		f.read.Do(func() { close(f.greeted) })
	}
	return n
}

// ends reports whether the connection's end is the facade's.
func (f *facade) ends() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = !f.kept
	return f.ended
}

var errFrame = errors.New("go-zookeeper sends pings and a close alone")

// Write takes one frame of go-zookeeper's.
func (f *facade) Write(p []byte) (int, error) {
	f.mu.Lock()
	first := !f.hello
	f.hello = true
	f.mu.Unlock()
	switch {
	case first:
		return len(p), nil
	case len(p) < proto.LengthSize+proto.RequestHeadSize:
		return 0, errFrame
	}
	xid := int32(binary.BigEndian.Uint32(p[proto.LengthSize:]))
	switch proto.Opcode(int32(binary.BigEndian.Uint32(p[proto.LengthSize+4:]))) {
	case proto.OpPing:
		if f.conn != nil {
			f.conn.wire.Send(&Request{Opcode: proto.OpPing, Class: Closing})
		}
	case proto.OpCloseSession:
		f.deliver(xid)
	default:
		return 0, errFrame
	}
	return len(p), nil
}

// deliver has go-zookeeper read the reply to its close.
func (f *facade) deliver(xid int32) {
	e := proto.NewEncoder()
	e.ReplyHead(xid, 0, proto.CodeOK)
	f.mu.Lock()
	f.unread = append(f.unread, e.Frame()...)
	f.mu.Unlock()
	signal(f.more)
}

// Close ends the connection.
func (f *facade) Close() error {
	if f.conn != nil {
		f.conn.close(net.ErrClosed)
	}
	return nil
}

func (f *facade) LocalAddr() net.Addr              { return address{} }
func (f *facade) RemoteAddr() net.Addr             { return address{} }
func (f *facade) SetDeadline(time.Time) error      { return nil }
func (f *facade) SetReadDeadline(time.Time) error  { return nil }
func (f *facade) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "tcp" }
func (address) String() string  { return ensemble }
