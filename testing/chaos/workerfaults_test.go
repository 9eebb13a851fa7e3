package chaos_test

import (
	"context"
	"time"

	"github.com/docent-go/docent/testing/history"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// workerFaults are done to workers and their ways to the ensemble.
func (r *run) workerFaults() []fault {
	return []fault{
		{"worker stopped while it held (SIGSTOP)", r.stopHolder},
		{"worker killed while it held (kill -9)", r.killHolder},
		{"session closed by somebody else", r.onSlot(r.closeSession)},
		{"worker cut off until it lost its session", r.onSlot(r.cutOff)},
		{"connections cut", r.onSlot(r.cut)},
		{"one way only: the other direction cut", r.onSlot(r.halfCut)},
		{"connections refused by one server", r.onSlot(r.refuse)},
	}
}

// onSlot does a fault to any worker that suffers none.
func (r *run) onSlot(do func(ctx context.Context, d dice, s *slot) bool) func(context.Context, dice) bool {
	return func(ctx context.Context, d dice) bool {
		for _, i := range d.Perm(len(r.slots)) {
			if s := r.slots[i]; s.claim() {
				defer s.yield()
				defer s.heal()
				return do(ctx, d, s)
			}
		}
		return false
	}
}

// holderLimit is how long a worker is waited for that lingers with a lock.
const holderLimit = 30 * time.Second

// onHolder does a fault to a worker that has just got a lock and will have it for a while.
func (r *run) onHolder(ctx context.Context, do func(s *slot, grant history.Record) bool) bool {
	timer := time.NewTimer(holderLimit)
	defer timer.Stop()
	for {
		select {
		case grant := <-r.board.linger:
			for _, s := range r.slots {
				if s.current().name == grant.Client && s.claim() {
					defer s.yield()
					return do(s, grant)
				}
			}
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		}
	}
}

// successionLimit bounds the wait for the next holder.
const successionLimit = 30 * time.Second

// stopHolder stops a holder until the next one has written, which takes a session's
// length, and so has it write late.
func (r *run) stopHolder(ctx context.Context, _ dice) bool {
	return r.onHolder(ctx, func(s *slot, grant history.Record) bool {
		p := s.current()
		from := history.Monotonic()
		r.fail(stop(p.cmd.Process))
		lock := grant.Stakes[0]
		await(ctx, successionLimit, func() bool {
			return r.store.fence(lock.Lock) > lock.Fence || r.board.hasEnded(grant.Lease)
		})
		r.fail(cont(p.cmd.Process))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stops = append(r.stops, stopped{p.name, from, history.Monotonic()})
		return true
	})
}

// killHolder kills a holder and starts another worker in its place.
func (r *run) killHolder(ctx context.Context, _ dice) bool {
	return r.onHolder(ctx, func(s *slot, _ history.Record) bool {
		p := s.current()
		r.fail(p.cmd.Process.Kill())
		<-p.done
		r.fail(s.start())
		return true
	})
}

// closeSession closes the worker's session behind its back, as though it were the
// worker, which can't come back meanwhile.
func (r *run) closeSession(ctx context.Context, d dice, s *slot) bool {
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
			attempt, cancel := context.WithTimeout(ctx, sessionTimeout/2)
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
func (r *run) cutOff(ctx context.Context, _ dice, s *slot) bool {
	at := history.Monotonic()
	for _, p := range s.proxies {
		p.Blackhole(zkproxy.Both)
	}
	return await(ctx, 2*sessionTimeout, func() bool { return r.board.lostSince(s.current().name, at) })
}

// cut breaks all connections, a few times.
func (r *run) cut(ctx context.Context, d dice, s *slot) bool {
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
func (r *run) halfCut(ctx context.Context, d dice, s *slot) bool {
	direction := zkproxy.ToServer
	if d.IntN(2) == 0 {
		direction = zkproxy.ToClient
	}
	for _, p := range s.proxies {
		p.Blackhole(direction)
	}
	pause(ctx, d.between(200*time.Millisecond, sessionTimeout*5/4))
	return true
}

// refuse has one server refuse connections, or leave them without an answer, after
// breaking those it has.
func (r *run) refuse(ctx context.Context, d dice, s *slot) bool {
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
