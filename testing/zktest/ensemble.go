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
	"time"
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

// Leader returns the member that leads the others, and waits for one as long as
// there is none. While two members say that they lead, it is the one that was
// elected later: the other is cut off, and about to notice. If ctx ends first the
// error is ctx's.
func (e *Ensemble) Leader(ctx context.Context) (*Server, error) {
	var leader *Server
	err := until(ctx, func() bool {
		leader = e.leaderBy(e.statuses(ctx))
		return leader != nil
	})
	if err != nil {
		return nil, fmt.Errorf("zktest: leader of %s: %w", e.Addr(), err)
	}
	return leader, nil
}

// Followers returns the members that follow a leader now, in the order of
// [Ensemble.Servers]. A member that does not answer within a second does not
// follow. It returns an error only if ctx ends first.
func (e *Ensemble) Followers(ctx context.Context) ([]*Server, error) {
	statuses := e.statuses(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("zktest: followers of %s: %w", e.Addr(), ended(ctx))
	}
	var followers []*Server
	for i, st := range statuses {
		if st.mode == Follower {
			followers = append(followers, e.Servers[i])
		}
	}
	return followers, nil
}

// awaitWhole returns when one member leads and all others follow or observe it.
func (e *Ensemble) awaitWhole(ctx context.Context) error {
	if err := until(ctx, func() bool { return e.whole(ctx) }); err != nil {
		return fmt.Errorf("zktest: one leader and all others following or observing in %s: %w", e.Addr(), err)
	}
	return nil
}

// whole reports whether one member leads and all others follow or observe it. The members' own reports are
// not enough: after a cut, some don't know yet that they lead no other member, or that the leader
// has dropped them.
func (e *Ensemble) whole(ctx context.Context) bool {
	statuses := e.statuses(ctx)
	modes := make(map[Mode]int)
	for _, st := range statuses {
		modes[st.mode]++
	}
	wantFollowers, wantObservers := e.voters-1, len(e.Servers)-e.voters
	if modes[Leader] != 1 || modes[Follower] != wantFollowers || modes[Observer] != wantObservers {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	followers, observers := 0, 0
	for _, s := range e.Servers[:e.voters] {
		f, o, err := s.synced(ctx)
		if err != nil {
			return false
		}
		followers, observers = followers+f, observers+o
	}
	return followers == wantFollowers && observers == wantObservers
}

// leaderBy returns the member that leads according to the members' statuses, or
// nil.
func (e *Ensemble) leaderBy(statuses []status) *Server {
	var leader *Server
	var latest uint64
	for i, st := range statuses {
		// The high half of a zxid counts elections.
		if epoch := st.zxid >> 32; st.mode == Leader && (leader == nil || epoch > latest) {
			leader, latest = e.Servers[i], epoch
		}
	}
	return leader
}

// statuses asks all members. One that serves no clients, or does not answer in
// time, has the zero status.
func (e *Ensemble) statuses(ctx context.Context) []status {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	statuses := make([]status, len(e.Servers))
	_ = e.each(func(i int, s *Server) error {
		if st, err := s.status(ctx); err == nil {
			statuses[i] = st
		}
		return nil
	})
	return statuses
}

// until tries cond every now and then until it is true, or returns ctx's error.
func until(ctx context.Context, cond func() bool) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-tick.C:
		}
	}
	return nil
}
