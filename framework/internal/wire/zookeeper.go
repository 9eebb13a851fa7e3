package wire

import (
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/proto"
)

// This file and facade.go alone know go-zookeeper. It has a goroutine that dials, by a function of the
// session's, and for each connection one that pings and one that waits for the connection's end.

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
