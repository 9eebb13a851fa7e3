package zktest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/docent-go/docent/testing/internal/gate"
)

const (
	// dialPatience is how long a forwarder tries to reach a member that does not
	// listen (yet). Its own listener has accepted by then, so the dialing member
	// would take a refusal for a broken leader and vote again.
	dialPatience = time.Second
	dialPause    = 20 * time.Millisecond
)

// A link forwards one member's connections to one port of another member, and can hold back bytes
// in either direction. Held bytes are not lost but late, as on a network that drops packets until
// it is repaired. No member is notified, and a connection breaks only where a member closes it.
type link struct {
	listener    net.Listener
	target      string
	forth, back *gate.Gate // to the target and from it
	greet       handshake  // what is done to a connection's first bytes; set by start

	ctx    context.Context // ends at close
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// A handshake reads the first bytes of a connection and returns what is to be
// forwarded in their place.
type handshake func(io.Reader) ([]byte, error)

// newLink returns a link that listens; it forwards once started.
func newLink(target string, forth, back *gate.Gate) (*link, error) {
	listener, err := net.Listen("tcp4", loopback(0))
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, target: target, forth: forth, back: back}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// start begins to forward. The greeting may be nil.
func (l *link) start(greet handshake) {
	l.greet = greet
	l.loops.Go(l.acceptLoop)
}

// port returns where the link listens.
func (l *link) port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// close ends the link with all its connections and waits for its goroutines.
// Calling it again does nothing.
func (l *link) close() error {
	l.cancel()
	err := l.listener.Close()
	l.loops.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// acceptLoop is started by start, ended by the listener's close and waited for
// by close, as are the forwarding goroutines that it starts.
func (l *link) acceptLoop() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.loops.Go(func() { l.forward(conn) })
	}
}

// forward serves one connection: it ends with either side of it, which ends the
// other side too, or with the link.
func (l *link) forward(from net.Conn) {
	defer from.Close()
	stop := context.AfterFunc(l.ctx, func() { _ = from.Close() })
	defer stop()
	if l.forth.Pass(l.ctx) != nil || l.back.Pass(l.ctx) != nil { // a handshake goes both ways
		return
	}
	to, err := l.dial()
	if err != nil {
		return // from sees its connection closed, as by a member that went down
	}
	defer to.Close()
	stop = context.AfterFunc(l.ctx, func() { _ = to.Close() })
	defer stop()

	var back sync.WaitGroup
	back.Go(func() { l.pump(from, to, l.back) })
	if l.introduce(to, from) == nil {
		l.pump(to, from, l.forth)
	}
	_ = to.Close()
	back.Wait()
}

// introduce forwards the first bytes, changed as the link's greeting has it.
func (l *link) introduce(to io.Writer, from io.Reader) error {
	if l.greet == nil {
		return nil
	}
	first, err := l.greet(from)
	if err != nil {
		return err
	}
	_, err = to.Write(first)
	return err
}

// pump copies from src to dst until either ends, and then closes both. The end of
// a connection is held back like its bytes.
func (l *link) pump(dst, src net.Conn, g *gate.Gate) {
	buf := make([]byte, 32<<10)
	for {
		n, readErr := src.Read(buf)
		if g.Pass(l.ctx) != nil {
			return // the link's end closes both
		}
		_, writeErr := dst.Write(buf[:n])
		if readErr != nil || writeErr != nil {
			_ = src.Close()
			_ = dst.Close()
			return
		}
	}
}

func (l *link) dial() (net.Conn, error) {
	limit := time.Now().Add(dialPatience)
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(l.ctx, "tcp4", l.target)
		if err == nil || time.Now().After(limit) {
			return conn, err
		}
		select {
		case <-l.ctx.Done():
			return nil, l.ctx.Err()
		case <-time.After(dialPause):
		}
	}
}
