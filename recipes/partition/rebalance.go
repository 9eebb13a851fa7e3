package partition

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/membership"
	"github.com/docent-go/docent/recipes/node"
)

// members returns the directory of the members.
func (p *Partition) members() string { return zkpath.Join(p.path, "members") }

// A rebalancer divides the keys whenever the members change, until the run ends. While another process has
// the id, it serves no key. One goroutine uses it.
type rebalancer struct {
	*run
	digest  string
	divider divider
	clock   settling

	seen     view // the latest one
	joined   bool // as a member
	before   bool // it has joined at some time of the run
	writing  bool
	settled  chan error // the result of the write
	refusals int        // of writes in a row
}

// rebalance divides the keys until the run ends. If this process may not join, or list the members, that
// ends the run at first; later it is logged. Without a list the division stays for maxBlind, and then the run ends.
func (r *run) rebalance(members *cache.Cache, self *node.Node) {
	own := make(chan node.Change)
	defer self.OnChange(func(c node.Change) {
		select {
		case own <- c:
		case <-r.ctx.Done():
		}
	})()
	r.keys.Go(func() { // the client, or the session that it is a view of, may end before the member joins
		if _ = self.Await(r.ctx); self.Closed() {
			r.stop(framework.ErrClosed)
		}
	})
	keys := r.Partition.keys
	b := &rebalancer{run: r, digest: digestOf(keys), divider: divider{keys: keys}, settled: make(chan error, 1)}
	views := r.views(members)
	for r.ctx.Err() == nil {
		b.step(own, views)
	}
}

// step waits for what comes next, and divides the keys if the members may have changed.
func (b *rebalancer) step(own <-chan node.Change, views <-chan view) {
	select {
	case change := <-own:
		b.changed(change)
		b.divide()
	case v, open := <-views:
		if !open {
			b.stop(framework.ErrClosed) // unless the run has ended: then it has its cause
			return
		}
		b.noteMembers(v)
		b.divide()
	case <-b.due():
		b.settle()
	case err := <-b.settled:
		b.wrote(err)
	case <-b.ctx.Done():
	}
}

// maxBlind is how long the keys stay where they are while this member can't list the members. Then it leaves:
// otherwise those that came later would wait for keys that it does not release.
const maxBlind = 30 * time.Second

// views returns the members, now and after each change, until the run or the client ends.
func (r *run) views(members *cache.Cache) <-chan view {
	views := make(chan view)
	r.keys.Go(func() {
		defer close(views)
		listed := false
		var blind *time.Timer // ends the run; nil while the members can be listed
		see := func() {
			if blind != nil {
				blind.Stop()
				blind = nil
			}
		}
		defer see()
		toView := func(s *cache.Snapshot) view { return viewOf(s, r.members()) }
		for v, err := range membership.Changes(r.ctx, members.Snapshots, toView, view.same, 0) {
			switch {
			case err != nil && !listed:
				r.stop(err)
				return
			case err != nil:
				r.warn("the members can't be listed: the keys stay where they are for "+maxBlind.String(), r.members(), err)
				if blind == nil {
					blind = time.AfterFunc(maxBlind, func() { r.stop(err) })
				}
				continue
			}
			listed = true
			see()
			select {
			case views <- v:
			case <-r.ctx.Done():
			}
		}
	})
	return views
}

// changed notes a change of this process's own member.
func (b *rebalancer) changed(c node.Change) {
	switch {
	case c.Kind == node.Made:
		b.joined, b.before = true, true
	case c.Kind == node.Taken:
		b.joined = false
		b.warn("another process has the id: waiting until it has left", b.path, c.Err)
	case errors.Is(c.Err, framework.ErrClosed):
		b.stop(framework.ErrClosed)
	case !errors.Is(c.Err, framework.ErrNoAuth) && !errors.As(c.Err, new(*errtype.ChildlessError)): // it has joined, or will
	case !b.before:
		b.stop(c.Err)
	default:
		b.warn("this process may not join again: it tries to", b.path, c.Err)
	}
}

// noteMembers notes what the members are.
func (b *rebalancer) noteMembers(v view) {
	if v.fault != nil && b.seen.fault == nil {
		b.warn("the members don't know which keys are served: each change moves keys at once", b.members(), v.fault)
	}
	b.seen = v
	b.clock.note(v.peers(b.digest), time.Now())
}

// divide begins to serve the keys that fall to this member, and ends the service of all others.
func (b *rebalancer) divide() {
	var mine []string
	if b.joined && b.ctx.Err() == nil {
		mine = b.divider.share(b.seen.peers(b.digest), b.cfg.id)
	}
	for key, end := range b.served {
		if _, found := slices.BinarySearch(mine, key); !found {
			end(ErrMoved)
			delete(b.served, key)
		}
	}
	for _, key := range mine {
		if b.served[key] == nil {
			b.begin(key)
		}
	}
}

// begin begins to serve the key.
func (r *run) begin(key string) {
	ctx, end := context.WithCancelCause(r.ctx)
	r.served[key] = end
	r.keys.Go(func() { // ends with ctx
		defer end(nil)
		returned := false
		defer func() { r.recovered(key, returned, recover()) }()
		if err := r.keep(ctx, key); err != nil {
			r.stop(err)
		}
		returned = true
	})
}

// due returns a channel that is ready when this member is to settle the members; nil if it is not to.
func (b *rebalancer) due() <-chan time.Time {
	p := b.seen.peers(b.digest)
	turn := p.turn(b.cfg.id)
	if b.writing || b.seen.fault != nil || turn < 0 || !p.unsettled() {
		return nil
	}
	at := b.clock.at(b.cfg.Settle, p.halved()).Add(time.Duration(min(turn, maxTurns)) * turnPause)
	return time.After(time.Until(at))
}

// settle writes that the keys are divided among the members that there are. Whichever member writes
// first decides, and all follow.
func (b *rebalancer) settle() {
	b.writing = true
	data, version := b.seen.next(b.digest), b.seen.version
	b.keys.Go(func() { // ends with the run
		_, err := b.client.Set(b.ctx, b.members(), data, version)
		b.settled <- err // it has room for the one write
	})
}

// wrote notes the result of a write. Another one follows in a while, unless the members are seen settled.
func (b *rebalancer) wrote(err error) {
	b.writing = false
	switch {
	case err == nil, framework.Retryable(err), errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrNoNode):
		b.clock.retry, b.refusals = time.Now().Add(pause), 0
		return
	case b.ctx.Err() != nil:
		return
	}
	if b.refusals++; b.refusals == 1 {
		b.warn("this member can't write which keys are served, and leaves it to others", b.members(), err)
	}
	b.clock.retry = time.Now().Add(maxDelays * pause)
}

// turn returns how many members are to settle the members before the one with the id: those that came
// before. It returns -1 if that one is no member.
func (p peers) turn(id string) (before int) {
	own, there := p.present[id]
	if !there {
		return -1
	}
	for _, czxid := range p.present {
		if czxid < own {
			before++
		}
	}
	return before
}

// turnPause is how long a member waits for the one that has the turn before it, which may have no
// connection; after maxTurns of them, all that are left have the turn.
const (
	turnPause = 100 * time.Millisecond
	maxTurns  = 10
)

// maxDelays is how many times the settle time changes can delay one another.
const maxDelays = 10

// A settling knows since when the members are others than those that are settled.
type settling struct {
	peers                 // as they are; nil if they are settled
	first, last time.Time // changes since they were settled
	retry       time.Time // no write before
}

// note notes what the members are.
func (s *settling) note(p peers, now time.Time) {
	switch {
	case !p.unsettled():
		*s = settling{retry: s.retry}
	case s.present == nil || !maps.Equal(s.settled, p.settled):
		*s = settling{peers: p, first: now, last: now, retry: s.retry} // members that see different ones write in turn
	case !maps.Equal(s.present, p.present):
		s.peers, s.last = p, now
	}
}

// at returns when the members have settled: when nothing has changed for the delay, or for ten times the
// delay at the most, or at once.
func (s *settling) at(delay time.Duration, atOnce bool) time.Time {
	at := s.last.Add(delay)
	if limit := s.first.Add(maxDelays * delay); limit.Before(at) {
		at = limit
	}
	if atOnce {
		at = s.last
	}
	if at.Before(s.retry) {
		return s.retry
	}
	return at
}
