//go:build !docent_plain

package waitqueue

import (
	"context"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
)

// sharing are the shortcuts of an attempt. A listing is sent right behind the creation of the node, or is
// one of another attempt of the client's: see [listings].
//
// If the last listing showed only one node ahead, its deletion grants the lock. No contender can
// get ahead of a node that exists, except as [Queue.MayReplace] says. The watch on the own node
// shows that this node exists, since a server sends events in the order of the changes. While more
// nodes are ahead, the attempt also watches the second predecessor, to know when only one is left. If the
// predecessor is an attempt of the same client, its grant shows that, and the second is not watched.
type sharing struct {
	*Attempt

	begun   time.Time // of the node's creation
	key     listingKey
	listing *alongListing // sent behind the creation; nil for none
	names   []string      // of the directory's children, as listed then; nil once used
	fresh   bool          // the node has not been listed yet
	took    time.Duration // from the creation to the return of its call

	deletionGrants     bool // the deletion of the predecessor grants the lock; see Queue.MayReplace
	bothDeletionsGrant bool // the deletion of the predecessor and of the second grants the lock
}

// newAttempt allocates the attempt and its shortcuts together.
func newAttempt() *Attempt {
	var both struct {
		Attempt
		sharing
	}
	both.sharing.Attempt = &both.Attempt
	both.Attempt.shortcuts = &both.sharing
	return &both.Attempt
}

// creating lists along with the creation if not too many other attempts do.
func (s *sharing) creating(opts []framework.CreateOption) []framework.CreateOption {
	c := s.znode.Client
	s.key = listingKey{s.znode.Session.Session(), c.AbsolutePath(s.queue.Dir), s.queue.Kinds[0]}
	s.begun, s.names, s.listing = time.Now(), nil, listingsOf(c).begin(s.key)
	if s.listing == nil {
		return opts
	}
	return append(opts, framework.ListTo("", &s.names))
}

func (s *sharing) answered() {
	s.fresh, s.took = true, time.Since(s.begun)
	ls := listingsOf(s.znode.Client)
	ls.end(s.key, s.listing, s.names)
	if s.znode.Path != "" {
		ls.add(s.self.Name)
	}
}

func (s *sharing) left(granted bool) {
	s.names = nil
	listingsOf(s.znode.Client).remove(s.self.Name, granted)
}

func (s *sharing) listed() bool { return s.names != nil }

// list returns what was listed along with the creation of the node or of another attempt's, or what a
// listing shows that the attempt shares. The first of these may have been on its way before.
func (s *sharing) list(ctx context.Context) (view, error) {
	q, c, own, fresh, names := s.queue, s.znode.Client, s.self.Name, s.fresh, s.names
	s.fresh, s.names, s.deletionGrants, s.bothDeletionsGrant = false, nil, false, false
	if names != nil {
		return q.ordered(ctx, c, names)
	}
	if fresh {
		most := max(2*s.took, time.Millisecond) // a listing that was sent meanwhile takes about as long
		v, err := listingsOf(c).listedAlong(ctx, s.key, q, own, most)
		if v.nodes != nil || err != nil {
			return v, err
		}
	}
	ask := func(ctx context.Context) (view, error) { return q.list(ctx, c) }
	return listingsOf(c).list(ctx, s.key, ask, func(v view) bool {
		return fresh && queuenode.Index(v.nodes, own) >= 0
	})
}

// prepare makes the attempt wait for the second predecessor, too, or for the grant of the predecessor.
func (s *sharing) prepare(pos position, nodes []queuenode.Node, own int) position {
	q := s.queue
	replaced := func(i int) bool { return q.MayReplace != nil && q.MayReplace(nodes[i], nodes[own]) }
	predecessor := q.Predecessor(nodes, own, own)
	if predecessor < 0 {
		return pos
	}
	second := q.Predecessor(nodes, own, predecessor)
	if second < 0 {
		s.deletionGrants = !replaced(predecessor)
		return pos
	}
	s.bothDeletionsGrant = q.Predecessor(nodes, own, second) < 0 && !replaced(predecessor) && !replaced(second)
	if len(q.Kinds) == 1 && q.MayReplace == nil { // each waits for all ahead, so its grant shows that they have gone
		pos.news = listingsOf(s.znode.Client).grantOf(pos.predecessor)
	}
	if pos.news == nil {
		pos.also = nodes[second].Name
	}
	return pos
}

func (s *sharing) after(w *waiter) (position, bool) {
	pos := position{ahead: 1, predecessor: w.pos.predecessor, holds: true}
	gone, moved := w.predecessor.deleted(), false
	select {
	case <-w.pos.news:
		moved = true
	default:
		if s.bothDeletionsGrant && w.also.deleted() && !gone {
			pos.ahead, moved = w.pos.ahead-1, true
		}
	}
	if moved {
		s.deletionGrants, s.bothDeletionsGrant = true, false
	}
	if s.deletionGrants && gone && w.own.watch.Valid() {
		return position{}, true
	}
	return pos, moved && !gone
}
