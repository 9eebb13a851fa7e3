package chaos_test

import (
	"context"
	"strings"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/lab/peers"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// workerFaults are done to workers, most of which hold a lock.
func (r *run) workerFaults() []fault {
	return []fault{
		{"worker stopped while it held (SIGSTOP)", r.onHolder(underGuard, r.stopHolder)},
		{"worker stopped for less than a session (SIGSTOP)", r.onAny(r.stopBriefly)},
		{"worker killed while it held (kill -9)", r.onHolder(r.rarelyLost, r.killHolder)},
		{"session closed by somebody else", r.onHolder(r.rarelyLost, r.closeSession)},
		{"worker cut off until it lost its session", r.onHolder(r.rarelyLost, r.cutOff)},
	}
}

// connectionFaults are done to the ways of a worker to the ensemble.
func (r *run) connectionFaults() []fault {
	return []fault{
		{"connections cut", r.onAny(r.cut)},
		{"one direction cut", r.onAny(r.halfCut)},
		{"connections refused by one server", r.onAny(r.refuse)},
	}
}

// A harm is a fault to a worker, which may just have got a lock and linger with it.
type harm func(ctx context.Context, d dice, s *slot, grant history.Record) bool

// hit does a fault to a worker that was claimed for it.
func hit(ctx context.Context, do harm, d dice, s *slot, grant history.Record) done {
	f := done{whom: s.current().name, from: history.Monotonic()} // it may be another one afterwards
	if !do(ctx, d, s, grant) {
		return done{}
	}
	f.to = history.Monotonic()
	return f
}

// onAny does a fault to any worker that has none.
func (r *run) onAny(do harm) func(context.Context, dice) done {
	return func(ctx context.Context, d dice) done {
		for _, i := range d.Perm(len(r.slots)) {
			if s := r.slots[i]; s.claim() {
				defer s.yield()
				defer s.heal()
				return hit(ctx, do, d, s, history.Record{})
			}
		}
		return done{}
	}
}

// holderLimit bounds the wait for a worker that lingers with a lock.
const holderLimit = 20 * time.Second

// onHolder does a fault to a worker that has just got a lock that fits.
func (r *run) onHolder(fits func(history.Record) bool, do harm) func(context.Context, dice) done {
	return func(ctx context.Context, d dice) done {
		waiting, cancel := context.WithTimeout(ctx, holderLimit)
		defer cancel()
		for {
			grant, ok := r.board.lingering(waiting, fits)
			if !ok {
				return done{}
			}
			for _, s := range r.slots {
				if s.current().name == grant.Client && s.claim() {
					defer s.yield()
					defer s.heal()
					return hit(ctx, do, d, s, grant)
				}
			}
		}
	}
}

// underGuard reports whether registers are written under the lock.
func underGuard(grant history.Record) bool { return strings.HasPrefix(grant.Group, "/chaos/guarded/") }

// rarelyLost reports whether no other kind of lock was lost less often so far. The board
// calls it, with its mutex held.
func (r *run) rarelyLost(grant history.Record) bool { return grant.Model == r.board.leastLostLocked() }

// successionLimit bounds the wait for the next holder.
const successionLimit = 30 * time.Second

// stopHolder stops a holder until the next one has written, which takes a session's
// length, and so has it write late.
func (r *run) stopHolder(ctx context.Context, _ dice, s *slot, grant history.Record) bool {
	lock := grant.Locks[0]
	return r.stopUntil(s, func() {
		await(ctx, successionLimit, func() bool {
			return r.store.fence(lock.Lock) > lock.Fence || r.board.hasEnded(grant.Lease)
		})
	})
}

// stopBriefly stops a worker for less than any session lasts.
func (r *run) stopBriefly(ctx context.Context, d dice, s *slot, _ history.Record) bool {
	return r.stopUntil(s, func() { pause(ctx, d.between(moment, shortestSession)) })
}

// stopUntil stops the slot's worker until wait returns.
func (r *run) stopUntil(s *slot, wait func()) bool {
	p := s.current()
	from := history.Monotonic()
	r.fail(peers.Stop(p.cmd.Process))
	wait()
	r.fail(peers.Continue(p.cmd.Process))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops = append(r.stops, stopped{p.name, from, history.Monotonic()})
	return true
}

// killHolder kills a holder and starts another worker in its place.
func (r *run) killHolder(_ context.Context, _ dice, s *slot, _ history.Record) bool {
	p := s.current()
	r.fail(p.cmd.Process.Kill())
	<-p.done
	r.fail(s.start())
	return true
}

// closeSession closes the worker's session behind its back, as though it were the
// worker, which can't come back meanwhile.
func (r *run) closeSession(ctx context.Context, d dice, s *slot, _ history.Record) bool {
	var sessions []zkproxy.Session
	for _, p := range s.proxies {
		sessions = append(sessions, p.Sessions()...)
		p.Refuse()
	}
	at := history.Monotonic()
	r.mu.Lock()
	for _, session := range sessions {
		r.revokes = append(r.revokes, revoke{s.current().name, session.ID, at})
	}
	r.mu.Unlock()
	for _, p := range s.proxies {
		p.Cut()
	}
	closed := false
	for _, session := range sessions {
		for _, i := range d.Perm(len(r.ensemble.Servers)) {
			attempt, cancel := context.WithTimeout(ctx, shortestSession/2)
			err := zktest.KillSession(attempt, r.ensemble.Servers[i].Addr(), session.ID, session.Password)
			cancel()
			if err == nil {
				closed = true
				break
			}
		}
	}
	return closed
}

// cutOff lets nothing through until the worker has lost a lease.
func (r *run) cutOff(ctx context.Context, _ dice, s *slot, _ history.Record) bool {
	at := history.Monotonic()
	for _, p := range s.proxies {
		p.Blackhole(zkproxy.Both)
	}
	return await(ctx, 2*longestSession, func() bool { return r.board.lostSince(s.current().name, at) })
}

// cut breaks all connections, a few times.
func (r *run) cut(ctx context.Context, d dice, s *slot, _ history.Record) bool {
	broken := 0
	for range 1 + d.IntN(4) {
		for _, p := range s.proxies {
			broken += p.Cut()
		}
		pause(ctx, d.between(0, 300*time.Millisecond))
	}
	return broken > 0
}

// halfCut lets requests through and no answers, or the other way round, for less than a
// session's length or a little more.
func (r *run) halfCut(ctx context.Context, d dice, s *slot, _ history.Record) bool {
	direction := zkproxy.ToServer
	if d.IntN(2) == 0 {
		direction = zkproxy.ToClient
	}
	for _, p := range s.proxies {
		p.Blackhole(direction)
	}
	pause(ctx, d.between(200*time.Millisecond, longestSession*5/4))
	return true
}

// refuse has one server refuse connections, or leave them without an answer, after
// breaking those it has.
func (r *run) refuse(ctx context.Context, d dice, s *slot, _ history.Record) bool {
	p := s.proxies[d.IntN(len(s.proxies))]
	if d.IntN(2) == 0 {
		p.Refuse()
	} else {
		p.Hang()
	}
	p.Cut()
	pause(ctx, d.between(200*time.Millisecond, 3*time.Second))
	return true
}
