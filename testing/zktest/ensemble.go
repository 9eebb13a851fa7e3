package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// An Ensemble is several servers that elect a leader and hold the same data. Observers
// ([WithObservers]) are members without a vote.
//
// The members reach each other only through forwarders in this process, which hold back bytes
// where a connection is cut. Their clients reach each directly. With [WithNamespaces] there are
// links between them instead, which drop packets.
type Ensemble struct {
	// Servers are the members, always in the same order. Don't change the slice.
	Servers []*Server

	dir     string  // immutable
	network network // immutable
	voters  int     // immutable; they come first

	mu   sync.Mutex // guards following; held while the network changes, one change after the other
	cuts cuts
}

// StartEnsemble starts an ensemble of n servers, 3 to 7, and returns when all of
// them serve clients. The caller must [Ensemble.Close] it. For the rest it is as
// [Start].
func StartEnsemble(ctx context.Context, n int, opts ...Option) (*Ensemble, error) {
	cfg, err := newConfig(opts)
	if n < minMembers || n+cfg.observers > maxMembers {
		err = errors.Join(fmt.Errorf("zktest: ensemble of %d and %d observers: must have %d to %d members",
			n, cfg.observers, minMembers, maxMembers), err)
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
		return nil, err
	}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// newEnsemble makes an ensemble, its network and its files; no server runs yet.
func newEnsemble(voters int, in install, cfg config) (*Ensemble, error) {
	n := voters + cfg.observers
	network, err := newNetwork(n, cfg)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("zktest: %w", err), network.close())
	}
	e := &Ensemble{dir: dir, network: network, voters: voters, cuts: newCuts(n)}
	for i := range n {
		id := i + 1
		l := layout{dir: filepath.Join(dir, strconv.Itoa(id)), root: dir, id: id, place: network.place(i)}
		for j := range l.peers {
			l.peers[j].observer = j >= voters
		}
		if err := l.write(cfg); err != nil {
			return nil, errors.Join(fmt.Errorf("zktest: %w", err), e.Close())
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

// Addr returns the addresses of all members, separated by commas.
func (e *Ensemble) Addr() string {
	addrs := make([]string, len(e.Servers))
	for i, s := range e.Servers {
		addrs[i] = s.Addr()
	}
	return strings.Join(addrs, ",")
}

// Repair undoes whatever has been done to the members: it heals, thaws and restarts
// them, and returns when one of them leads, all others follow or observe it and all
// serve clients. If ctx ends first the error is ctx's. It returns [ErrClosed] after
// Close.
func (e *Ensemble) Repair(ctx context.Context) error {
	err := e.change(func(c *cuts) { *c = newCuts(len(e.Servers)) })
	if err != nil {
		return err
	}
	err = e.each(func(_ int, s *Server) error {
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
	return errors.Join(err, e.network.close(), os.RemoveAll(e.dir))
}
