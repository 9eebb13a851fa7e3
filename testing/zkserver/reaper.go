package zkserver

import (
	"maps"
	"slices"
	"time"
)

// A reaper removes containers that have lost their last child and TTL nodes that
// have outlived their time, as ZooKeeper's leader does: at fixed intervals. Its timer
// runs only while there is something to remove. It is guarded by Server.mu.
type reaper struct {
	server   *Server
	interval time.Duration
	timer    *time.Timer
	next     time.Time // when the timer is set to; zero if it isn't
}

func newReaper(s *Server, interval time.Duration) *reaper {
	r := &reaper{server: s, interval: interval}
	r.timer = newTimer(r.tick)
	return r
}

// noticeLocked looks at what a transaction has done and sets the timer if a node may
// have become due. It needs Server.mu.
func (r *reaper) noticeLocked(x *txn) {
	t := r.server.tree
	if len(t.reapable) == 0 {
		return
	}
	for i := range x.changes {
		path := x.changes[i].path
		if x.changes[i].kind == Deleted {
			path, _ = parentOf(path)
		}
		if due, ok := r.dueLocked(path); ok {
			r.armLocked(due)
		}
	}
}

// dueLocked returns when a znode may be removed if nothing happens to it; the zero time means at
// once. It reports false for a znode that stays.
func (r *reaper) dueLocked(path string) (time.Time, bool) {
	n := r.server.tree.nodes[path]
	if n == nil || len(n.children) > 0 {
		return time.Time{}, false
	}
	switch kindOf(n.stat.EphemeralOwner) {
	case ownerContainer:
		// A container that has never had a child is kept, for the one who has
		// made it to put a child in.
		return time.Time{}, n.stat.Cversion > 0
	case ownerTTL:
		ttl := n.stat.EphemeralOwner &^ ttlOwner
		return time.UnixMilli(n.stat.Mtime + ttl + 1).Add(-r.server.shift), true
	}
	return time.Time{}, false
}

// armLocked sets the timer to the first interval's end at or after due.
func (r *reaper) armLocked(due time.Time) {
	now := time.Now()
	since := max(due.Sub(r.server.started), now.Sub(r.server.started)+1)
	at := r.server.started.Add((since + r.interval - 1).Truncate(r.interval))
	if r.next.IsZero() || at.Before(r.next) {
		r.next = at
		r.timer.Reset(at.Sub(now))
	}
}

// tick is called by the timer, on a goroutine of its own.
func (r *reaper) tick() {
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.frozen || !s.decides() {
		return
	}
	r.runLocked()
}

// runLocked removes what is due and sets the timer for the rest.
func (r *reaper) runLocked() {
	r.next = time.Time{}
	now := time.Now()
	for _, path := range slices.Sorted(maps.Keys(r.server.tree.reapable)) {
		due, ok := r.dueLocked(path)
		switch {
		case !ok:
		case due.After(now):
			r.armLocked(due)
		default:
			r.server.removeReapable(path)
		}
	}
}
