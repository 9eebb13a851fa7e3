package zkconn

import (
	"net"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
)

// An ACL is an entry of an access list.
type ACL = zk.ACL

// A LinkEvent is a change of a Conn's connection.
type LinkEvent int

// The changes of a connection.
const (
	LinkUp      LinkEvent = iota + 1 // the session has a connection
	LinkDown                         // it has none any more
	LinkExpired                      // the server no longer knows the session
)

// A NodeEvent is a change of a watched znode; the values are the protocol's.
type NodeEvent int

// The events.
const (
	NodeCreated NodeEvent = iota + 1
	NodeDeleted
	NodeDataChanged
	NodeChildrenChanged
)

// A Config is what a Conn needs for its session.
type Config struct {
	Hosts   zk.HostProvider
	Host    string // what Hosts returns
	Timeout time.Duration
	Request int // the longest request, in bytes
	Reply   int // the longest reply
	Dial    func(addr string) (net.Conn, error)
	Logger  *zap.Logger
	OnLink  func(LinkEvent)                    // must not block
	OnNode  func(event NodeEvent, path string) // must not block
}

// wireLogger logs what the wire client prints: addresses and failed attempts to connect, nothing of
// a request's content.
type wireLogger struct{ log *zap.SugaredLogger }

func (l wireLogger) Printf(format string, args ...any) { l.log.Debugf("wire client: "+format, args...) }
