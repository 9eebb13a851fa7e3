package framework

import (
	"net"
	"time"

	"go.uber.org/zap"
)

// A linkEvent is a change of a wire's connection.
type linkEvent int

const (
	linkUp      linkEvent = iota + 1 // the session has a connection
	linkDown                         // it has none any more
	linkExpired                      // the server knows the session no more
)

// A wireConfig is what a wire needs of its session.
type wireConfig struct {
	hosts   *hosts
	timeout time.Duration
	request int // the longest request, in bytes
	reply   int // the longest reply
	dial    func(addr string) (net.Conn, error)
	logger  *zap.Logger
	onLink  func(linkEvent)                   // must not block
	onNode  func(kind EventKind, path string) // must not block
}

// wireLogger passes on what the wire client prints: addresses and failures to
// connect, nothing of a request's content.
type wireLogger struct{ log *zap.SugaredLogger }

func (l wireLogger) Printf(format string, args ...any) { l.log.Debugf("wire client: "+format, args...) }
