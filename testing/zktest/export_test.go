package zktest

import (
	"bytes"
	"context"

	"github.com/docent-go/docent/testing/internal/gate"
)

var ErrPortTaken = errPortTaken

// StartAt starts a server at a port that may be taken.
func StartAt(ctx context.Context, port int) (*Server, error) {
	cfg, err := newConfig(nil)
	if err != nil {
		return nil, err
	}
	in, err := locate()
	if err != nil {
		return nil, err
	}
	return startAt(ctx, port, in, cfg)
}

func RetryTaken(start func() (int, error)) (int, error) { return retryTaken(start) }

// SharedServer is Shared for those who have no test.
func SharedServer(ctx context.Context) (*Server, error) { return suite.sharedServer(ctx) }

func (s *Server) Port() int   { return s.layout.port }
func (s *Server) Dir() string { return s.layout.dir }

func LocateJars(home, packaged string) ([]string, error) { return locateJars(home, packaged) }
func LocateJava(home string) (string, error)             { return locateJava(home) }

// A TestLink shows a link.
type TestLink struct {
	Port    int
	SetOpen func(bool)
	Close   func() error
}

func NewLink(target string) (TestLink, error) {
	g := gate.New()
	l, err := newLink(target, g, g)
	if err != nil {
		return TestLink{}, err
	}
	l.start(nil)
	return TestLink{Port: l.port(), SetOpen: g.Set, Close: l.close}, nil
}

// Announce applies the greeting of a member whose election port is election.
func Announce(election, port int, sent []byte) ([]byte, error) {
	return announce(peer{host: localhost, election: election}, port)(bytes.NewReader(sent))
}

var ErrNotServing = errNotServing

func (s *Server) SyncedFollowers(ctx context.Context) (int, error) {
	followers, _, err := s.synced(ctx)
	return followers, err
}

// SyncedObservers is how many observers the server keeps up to date.
func (s *Server) SyncedObservers(ctx context.Context) (int, error) {
	_, observers, err := s.synced(ctx)
	return observers, err
}
