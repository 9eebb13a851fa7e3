// Package session has one ZooKeeper session of a client, from its first connection to its end. It
// connects to one server after another, keeps the lease clock fresh while callers hold the session,
// and abandons the session at its deadline. The client is a [Client] to it, which is notified of each
// change, decides on states, and starts the next session.
package session

import (
	"context"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/wire"
)

// A Client has sessions. Only Spawn is called with a lock of the session
// held.
type Client interface {
	// Connect makes a connection to the server, within ctx.
	Connect(ctx context.Context, t hosts.Target) (net.Conn, error)
	// StartSASL begins the exchange that precedes all other data of a connection to the server. It
	// returns nil if there is none.
	StartSASL(ctx context.Context, server string) (wire.Exchange, error)
	// Credentials returns what a new connection presents.
	Credentials() []wire.Credential
	// Refused reports whether a server has refused a credential. Until a server answers a probe,
	// no connection serves then.
	Refused() bool

	// BeginRound is called before the first attempt to connect, and each time that an attempt at
	// every server has failed. It may change the session's servers.
	BeginRound(s *Session)
	// RoundFailed is called when an attempt at every server has failed, before the pause.
	RoundFailed()
	// Failed is called when an attempt to connect to the server failed with err.
	Failed(server string, err error)

	// Connected is called when a connection begins to serve, in the session's loop, as the
	// following methods are.
	Connected(s *Session)
	// Suspended is called when a connection that served has ended, because of fault.
	Suspended(s *Session, fault error)
	// AuthFailed is called when a server has refused the client, because of fault.
	AuthFailed(s *Session, fault error)

	// Spawn runs fn on a goroutine that the client's end waits for. It returns false if the client is
	// closing. It must not call the session.
	Spawn(fn func()) bool
}

// A Config is what a session needs. It is immutable.
type Config struct {
	Client  Client
	Log     *zap.Logger
	Servers *hosts.List

	// ReadOnly makes the session connect only to servers that have lost their quorum. Such a session
	// ends with its connection.
	ReadOnly bool

	Timeout        time.Duration // to ask for
	ConnectTimeout time.Duration // of an attempt to connect and of a probe
	MaxRequest     int           // in bytes
	MaxReply       int           // in bytes

	// Margin returns the lease margin for the negotiated timeout. Wanted is the margin that the
	// user has configured; zero means none.
	Margin func(timeout time.Duration) time.Duration
	Wanted time.Duration

	Trees *watchreg.Trees // shared by the sessions of one client; nil for none
}
