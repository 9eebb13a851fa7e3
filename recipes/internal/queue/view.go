package queue

import (
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
)

// A view is what the attempts of one session know together about who stands in
// a directory: the latest listing, less those that have been seen to go. What it
// shows ahead of a node that it contains is all that can stand there: what stands
// was created in the order of its number, so whatever stood ahead when the node
// came was in the first listing that had the node, and none has come since. It
// may show some that have gone unseen.
type view struct {
	key viewKey

	mu      sync.Mutex     // guards following; never held across a request
	users   int            // attempts that wait; guarded by views.mu, too
	nodes   []Node         // that may stand, in order
	gone    []Node         // since the listing
	covered map[string]int // nodes whose end somebody that waits will see
}

// A viewKey names what the attempts have in common that share a view.
type viewKey struct {
	session   int64
	dir, kind string // in the ensemble; the first of the queue's kinds
}

// views are those of one client.
type views struct {
	mu    sync.Mutex
	byKey map[viewKey]*view // those that somebody uses
}

type viewsKey struct{}

func viewsOf(c *framework.Client) *views {
	return c.Shared(viewsKey{}, func() any { return &views{byKey: make(map[viewKey]*view)} }).(*views)
}

// join returns the view with the key, for one more user.
func (vs *views) join(key viewKey) *view {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v := vs.byKey[key]
	if v == nil {
		v = &view{key: key, covered: make(map[string]int)}
		vs.byKey[key] = v
	}
	v.users++
	return v
}

func (vs *views) leave(v *view) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v.users--; v.users == 0 {
		delete(vs.byKey, v.key)
	}
}

// passed takes note that the node with the name has gone, if anybody cares.
func (vs *views) passed(key viewKey, name string) {
	vs.mu.Lock()
	v := vs.byKey[key]
	vs.mu.Unlock()
	if v != nil {
		v.pass(name)
	}
}

// renew takes over a new listing, in order.
func (v *view) renew(nodes []Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.nodes, v.gone = nodes, nil
}

// pass takes note that the node with the name has gone.
func (v *view) pass(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := Index(v.nodes, name)
	if i < 0 {
		return
	}
	v.gone = append(v.gone, v.nodes[i])
	if i == 0 {
		v.nodes = v.nodes[1:] // the usual case, without moving the others
		return
	}
	v.nodes = slices.Delete(v.nodes, i, i+1)
}

// find returns where the node with the name stands. ok says whether the view
// contains it, and can vouch for what it shows ahead of it.
func (v *view) find(q *Queue, name string) (p position, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	own := Index(v.nodes, name)
	if own < 0 {
		return position{}, false
	}
	node := v.nodes[own]
	if node.Sequence == lastSequence {
		return position{}, false // more than its number decides about its place
	}
	if q.Heirs != nil {
		for _, g := range v.gone {
			if compare(g, node) < 0 && q.Heirs(g, node) {
				return position{}, false
			}
		}
	}
	p = q.position(v.nodes, own)
	p.nextCovered = v.covered[p.next] > 0
	return p, true
}

// covers reports whether somebody that waits will see the end of the node.
func (v *view) covers(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.covered[name] > 0
}

// cover takes note that somebody that waits will see the end of the node.
func (v *view) cover(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.covered[name]++
}

func (v *view) uncover(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.covered[name]--; v.covered[name] <= 0 {
		delete(v.covered, name)
	}
}
