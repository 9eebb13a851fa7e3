package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The sizes that an ensemble may have: three members are the fewest that survive
// the loss of one, and each further one costs a JVM and two links to each other.
const (
	minMembers = 3
	maxMembers = 7
)

// An Ensemble is several servers that elect a leader and hold the same data.
//
// The members reach each other only through forwarders in this process, which
// [Ensemble.Isolate] makes hold back what passes. Clients reach each member
// directly.
type Ensemble struct {
	// Servers are the members, always in the same order. Don't change the slice.
	Servers []*Server

	dir  string // immutable
	mesh *mesh  // immutable
}

// StartEnsemble starts an ensemble of n servers, 3 to 7, and returns when all of
// them serve clients. The caller must [Ensemble.Close] it. For the rest it is as
// [Start].
func StartEnsemble(ctx context.Context, n int, opts ...Option) (*Ensemble, error) {
	cfg, err := newConfig(opts)
	if n < minMembers || n > maxMembers {
		err = errors.Join(fmt.Errorf("zktest: ensemble of %d: must have %d to %d members", n, minMembers, maxMembers), err)
	}
	if err != nil {
		return nil, err
	}
	in, err := locate()
	if err != nil {
		return nil, err
	}
	return retryTaken(func() (*Ensemble, error) { return startEnsemble(ctx, n, in, cfg) })
}

func startEnsemble(ctx context.Context, n int, in install, cfg config) (*Ensemble, error) {
	e, err := newEnsemble(n, in, cfg)
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// newEnsemble makes an ensemble and its files; only the forwarders run yet.
func newEnsemble(n int, in install, cfg config) (*Ensemble, error) {
	ports, err := drawPorts(3 * n)
	if err != nil {
		return nil, err
	}
	members := make([]peer, n)
	for i := range members {
		members[i] = peer{id: i + 1, quorum: ports[n+i], election: ports[2*n+i]}
	}
	mesh, err := newMesh(members)
	if err != nil {
		return nil, errors.Join(err, mesh.close())
	}
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, errors.Join(err, mesh.close())
	}
	e := &Ensemble{dir: dir, mesh: mesh}
	for i, member := range members {
		l := layout{
			dir:   filepath.Join(dir, strconv.Itoa(member.id)),
			root:  dir,
			port:  ports[i],
			id:    member.id,
			peers: mesh.seenBy(i),
		}
		if err := l.write(cfg); err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.Servers = append(e.Servers, newServer(l, in, cfg))
	}
	return e, nil
}

// start starts all members and returns when they are an ensemble. The first
// member that fails ends it for all: its error is the one that tells.
func (e *Ensemble) start(ctx context.Context) error {
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed sync.Once
	var first error
	_ = e.each(func(_ int, s *Server) error {
		err := s.Restart(starting)
		if err != nil {
			failed.Do(func() { first = err; cancel() })
		}
		return err
	})
	if first != nil {
		return first
	}
	return e.awaitWhole(ctx)
}

// each does something to all members at once and waits for it.
func (e *Ensemble) each(do func(i int, s *Server) error) error {
	errs := make([]error, len(e.Servers))
	var all sync.WaitGroup
	for i, s := range e.Servers {
		all.Go(func() { errs[i] = do(i, s) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// ConnectString returns all members' addresses, separated by commas.
func (e *Ensemble) ConnectString() string {
	addrs := make([]string, len(e.Servers))
	for i, s := range e.Servers {
		addrs[i] = s.Addr()
	}
	return strings.Join(addrs, ",")
}

// Isolate cuts a member off from the others, in both directions, until
// [Ensemble.Heal]: all that they send each other is held back, no connection
// breaks by itself, and clients reach them all as before. It returns at once, and
// does nothing to a member that is isolated.
//
// A follower notices, and stops serving clients, when it has heard nothing from
// its leader for the sync limit ([WithSyncLimit], less a tick or so); until then
// it answers reads from what it has. A leader without a majority notices as late.
//
// It panics if s is not a member of e.
func (e *Ensemble) Isolate(s *Server) { e.mesh.setCut(e.index(s), true) }

// Heal ends what [Ensemble.Isolate] began: what was held back arrives, late,
// where the connection still stands. It returns at once; [Server.Mode] tells
// when the member has found its leader again. It does nothing to a member that is
// not isolated, and panics if s is not a member of e.
func (e *Ensemble) Heal(s *Server) { e.mesh.setCut(e.index(s), false) }

func (e *Ensemble) index(s *Server) int {
	i := slices.Index(e.Servers, s)
	if i < 0 {
		panic("zktest: server " + s.Addr() + " is not a member of this ensemble")
	}
	return i
}

// Mend undoes whatever has been done to the members: it heals, thaws and restarts
// them, and returns when one of them leads, all others follow it and all serve
// clients. If ctx ends first the error is ctx's. It returns [ErrClosed] after
// Close.
func (e *Ensemble) Mend(ctx context.Context) error {
	for _, s := range e.Servers {
		e.Heal(s)
	}
	err := e.each(func(_ int, s *Server) error {
		if err := s.Thaw(); err != nil {
			return s.Restart(ctx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.awaitWhole(ctx)
}

// Close kills all members, removes their data and returns when everything is
// gone. Calling it again does nothing.
func (e *Ensemble) Close() error {
	err := e.each(func(_ int, s *Server) error { return s.Close() })
	return errors.Join(err, e.mesh.close(), os.RemoveAll(e.dir))
}
