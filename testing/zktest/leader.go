package zktest

import (
	"context"
	"fmt"
	"time"
)

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
