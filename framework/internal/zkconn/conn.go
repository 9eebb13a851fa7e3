// Package zkconn is the only package that knows the wire client. The wire client connects, makes the
// handshake, and pings. Package tap makes the requests, and delivers events.
package zkconn

import (
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
)

// A LinkEvent is a change of a Conn's connection.
type LinkEvent int

// The changes of a connection.
const (
	LinkUp      LinkEvent = iota + 1 // the session has a connection
	LinkDown                         // it has none any more
	LinkExpired                      // the server no longer knows the session
)

// A Config is what a Conn needs for its session.
type Config struct {
	Hosts   zk.HostProvider
	Host    string // what Hosts returns
	Timeout time.Duration
	Dial    func(addr string) (net.Conn, error)
	Logger  *zap.Logger
	OnLink  func(LinkEvent) // must not block
}

// A Conn is the wire client of one session. It is never used for the next session.
type Conn struct {
	conn   *zk.Conn
	events <-chan zk.Event
}

// bufferSize is that of the wire client's two buffers, in bytes: it has handshakes and pings alone.
const bufferSize = 4 << 10

// New starts to connect; it does not wait.
func New(cfg Config) (*Conn, error) {
	conn, events, err := zk.Connect([]string{cfg.Host}, cfg.Timeout,
		zk.WithHostProvider(cfg.Hosts),
		zk.WithDialer(func(_, addr string, _ time.Duration) (net.Conn, error) { return cfg.Dial(addr) }),
		zk.WithEventCallback(func(ev zk.Event) { dispatch(cfg, ev) }),
		zk.WithLogger(wireLogger{cfg.Logger.Sugar()}),
		zk.WithLogInfo(false),
		zk.WithMaxBufferSize(bufferSize),
		zk.WithMaxConnBufferSize(bufferSize),
	)
	if err != nil {
		return nil, fmt.Errorf("wire client: %s", err.Error())
	}
	return &Conn{conn: conn, events: events}, nil
}

// dispatch runs on the wire client's goroutines. It returns before the wire client reads on.
func dispatch(cfg Config, ev zk.Event) {
	switch ev.State {
	case zk.StateHasSession:
		cfg.OnLink(LinkUp)
	case zk.StateDisconnected:
		cfg.OnLink(LinkDown)
	case zk.StateExpired:
		cfg.OnLink(LinkExpired)
	}
}

// Close ends the session in order if there is a connection, which takes a second at the most. It
// returns when the wire client's goroutines have ended. cut closes the socket in use.
func (w *Conn) Close(cut func()) {
	w.conn.Close()
	cut()
	for range w.events { // closed by the wire client when it is done
	}
}

// wireLogger logs what the wire client prints: addresses and failed attempts to connect, nothing of
// a request's content.
type wireLogger struct{ log *zap.SugaredLogger }

func (l wireLogger) Printf(format string, args ...any) { l.log.Debugf("wire client: "+format, args...) }
