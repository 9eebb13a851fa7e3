package sim_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/fault"
)

// The guarantees of caches, in addition to those of locks.
const (
	truth          guarantee = "truth"
	everyChange    guarantee = "every change told"
	complete       guarantee = "complete"
	oneMoment      guarantee = "one moment"
	knownStaleness guarantee = "known staleness"
	leavesNothing  guarantee = "leaves nothing"
)

// stateOf returns what a snapshot shows.
func stateOf(s *cache.Snapshot) treeState {
	state := treeState{}
	for path, n := range s.All() {
		state[path] = version{n.Stat.Czxid, n.Stat.Mzxid, string(n.Data)}
	}
	return state
}

// look is the validator of "truth" and of "one moment" for snapshots, one after another.
func (x *cacheLife) look(s *cache.Snapshot) {
	shown := stateOf(s)
	x.env.mu.Lock()
	defer x.env.mu.Unlock()
	for path, v := range shown {
		if v.mzxid < x.seen[path] {
			x.env.violatedLocked(truth, "%s shows %s of transaction %#x after that of %#x",
				x.client.name, path, v.mzxid, x.seen[path])
		}
		if v.mzxid != x.seen[path] && !x.past.was(path, v) {
			x.env.violatedLocked(truth, "%s shows %s as it never was: %#x, %#x",
				x.client.name, path, v.czxid, v.mzxid)
		}
		x.seen[path] = v.mzxid
	}
	if !s.Settled() {
		x.env.counts["cache unsettled snapshots"]++
		return
	}
	x.env.counts["cache settled snapshots"]++
	for i := x.state; i < len(x.past.states); i++ {
		if maps.Equal(shown, x.past.states[i].within(cachedRoot, x.depth)) {
			x.state = i
			return
		}
	}
	x.env.violatedLocked(oneMoment, "%s has a settled snapshot of %d znodes, which is no state since number %d",
		x.client.name, s.Len(), x.state)
}

// was reports whether the znode ever had the version.
func (p *past) was(path string, v version) bool {
	for _, state := range slices.Backward(p.states) {
		if state[path] == v {
			return true
		}
	}
	return false
}

// checkComplete is the validator of "complete": of each znode, the snapshot shows what it was in the
// state with the number, or later.
func (x *cacheLife) checkComplete(op string, s *cache.Snapshot, since int) {
	x.checkShows(complete, op+" has returned", s, since)
}

func (x *cacheLife) checkShows(g guarantee, when string, s *cache.Snapshot, since int) {
	shown := stateOf(s)
	x.env.mu.Lock()
	defer x.env.mu.Unlock()
	states := x.past.states[since:]
	paths := maps.Clone(shown)
	for _, state := range states {
		maps.Copy(paths, state.within(cachedRoot, x.depth))
	}
	for path := range paths {
		if !wasOneOf(states, path, shown) {
			x.env.violatedLocked(g, "%s, and %s shows %s of transaction %#x, which is older than state %d",
				when, x.client.name, path, shown[path].mzxid, since)
			return
		}
	}
}

// wasOneOf reports whether the znode was in any of the states as shown. A transaction may delete a znode
// and create it again: then a cache may show that there is none, until the cache has read the new one.
func wasOneOf(states []treeState, path string, shown treeState) bool {
	v, exists := shown[path]
	created := states[0][path].czxid
	for _, state := range states {
		was, existed := state[path]
		if existed == exists && was == v || !exists && was.czxid != created {
			return true
		}
	}
	return false
}

// checkStale is the validator of "known staleness" for a client that has no connection.
func (x *cacheLife) checkStale() {
	away := func() bool {
		s := x.f.State()
		return s == framework.Suspended || s == framework.Lost
	}
	if !away() {
		return
	}
	pass(promptly) // the client's listeners are called one after another
	if _, stale := x.cache.Stale(); away() && !stale {
		x.env.violated(knownStaleness, "%s is %v, and its cache is not stale", x.client.name, x.f.State())
	}
}

// checkUndisturbed is the validator of "known staleness" for a cache that claims not to be stale
// while nothing goes wrong: it is behind by a moment only.
func (x *cacheLife) checkUndisturbed() {
	since := x.past.present(x.env)
	_, stale := x.cache.Stale()
	pass(x.env.prompt())
	s := x.cache.Snapshot()
	_, still := x.cache.Stale()
	harmed := x.env.harmed(x.client, x.env.now()-x.env.prompt()-x.env.settling())
	if _, closing := x.client.present(); stale || still || harmed || closing {
		return
	}
	x.env.count("cache undisturbed", 1)
	x.checkShows(knownStaleness, "nothing went wrong", s, since)
}

// checkEnd is the validator of all guarantees once all is well and no client writes.
func (x *cacheLife) checkEnd() {
	x.writing.Wait()
	if x.client.current() != x.f || x.f.State() == framework.Closed {
		return
	}
	if !x.sync(x.env.settling() + 20*time.Second) {
		x.env.violated(liveness, "all is well, and Sync of the cache of %s fails", x.client.name)
		return
	}
	pass(time.Second) // the events come on another goroutine
	s := x.cache.Snapshot()
	if since, stale := x.cache.Stale(); stale {
		x.env.violated(knownStaleness, "all is well, and the cache of %s is stale since %v", x.client.name, since.Sub(x.env.began))
	}
	if !s.Settled() {
		x.env.violated(oneMoment, "nobody writes, and after Sync the snapshot of %s is not settled", x.client.name)
	}
	if !x.journal.LeadsTo(s) {
		x.env.violated(everyChange, "the events of %s do not lead to what its cache has", x.client.name)
	}
	x.checkShows(complete, "nobody writes", s, x.past.present(x.env))
	x.env.count("cache at the end", 1)
}

// checkWatches is the validator of "leaves nothing": when all caches are closed, the server notifies
// no client of a change.
func (k *caching) checkWatches() {
	pass(k.env.settling())
	ctx, cancel := context.WithTimeout(k.env.ctx, time.Minute)
	defer cancel()
	watched := fault.Rule{Op: fault.Event, Path: k.env.plan.root + cachedRoot, Action: fault.Pass, Times: fault.Forever}
	events := k.env.srv.Rules().Add(watched)
	defer events.Release()
	_, err := k.env.operator.Create(ctx, cachedRoot, nil)
	if errors.Is(err, framework.ErrNodeExists) {
		_, err = k.env.operator.Set(ctx, cachedRoot, nil, framework.AnyVersion)
	}
	if err != nil {
		return
	}
	pass(time.Second)
	if n := events.Hits(); n > 0 {
		k.env.violated(leavesNothing, "all caches are closed, and the server notified %d clients", n)
	}
	k.env.count("cache left nothing", 1)
}

// cacheBugs are, for each guarantee of caches, what its validators have to find.
func cacheBugs() []deliberate {
	unheard := unheard(cachedRoot, 3)
	const losing = "a connection loses every third event of the caches' tree"
	return []deliberate{
		{truth, "a server answers a read from its memory", "after that of", onConnections(newReminiscent, calm)},
		{everyChange, "a listener misses every fifth event of a cache", "", func(b *bug) { b.events = inattentive }},
		{complete, losing, "Sync has returned", unheard},
		{oneMoment, losing, "no state since", unheard},
		{knownStaleness, losing, "nothing went wrong", unheard},
		{leavesNothing, "a connection removes another watch than the caches'", "notified", func(b *bug) {
			b.dialed = func(c net.Conn) net.Conn { return &clinging{c} }
		}},
	}
}

// calm leaves out all faults.
func calm(p *plan) {
	p.faults, p.horizon = nil, 5*p.timeout
	p.timeout = min(p.timeout, 30*time.Second)
}

// inattentive drops every fifth event.
func inattentive(listen func(cache.Event)) func(cache.Event) {
	n := 0
	return func(e cache.Event) {
		if n++; n%5 > 0 {
			listen(e)
		}
	}
}

// A clinging connection removes the watches of another path in the place of the caches'.
type clinging struct{ net.Conn }

func (c *clinging) Write(p []byte) (int, error) {
	if _, op, _ := request(p); op == proto.OpRemoveWatches {
		p = bytes.Replace(p, []byte(cachedRoot), []byte("/CACHED"), 1)
	}
	return c.Conn.Write(p)
}

// unheard is a bug by which connections lose one in so many events of a part of the tree.
func unheard(root string, of int) func(*bug) {
	return onConnections(func(c net.Conn) net.Conn { return newUnheard(c, root, of) }, calm)
}

func newUnheard(c net.Conn, root string, of int) net.Conn {
	n := 0
	return &frames{Conn: c, change: func(body []byte) []byte {
		d := proto.NewDecoder(body)
		if d.ReplyHead().Xid != proto.XidEvent {
			return body
		}
		d.Int32() // the kind
		d.Int32() // the state
		if !strings.HasPrefix(unspelled(d.Path()), root) {
			return body
		}
		if n++; n%of == 0 {
			return nil
		}
		return body
	}}
}

// A reminiscent connection answers every third read of a znode of the caches' tree with the first reply
// to such a read.
type reminiscent struct {
	*frames
	replies map[string][][]byte // by path; used by Read alone

	mu    sync.Mutex
	reads map[int32]string // guarded by mu: the paths, by xid
}

func newReminiscent(c net.Conn) net.Conn {
	made := &reminiscent{replies: map[string][][]byte{}, reads: map[int32]string{}}
	made.frames = &frames{Conn: c, change: made.answer}
	return made
}

func (c *reminiscent) Write(p []byte) (int, error) {
	if xid, op, d := request(p); op == proto.OpGetData {
		c.mu.Lock()
		c.reads[xid] = d.Path()
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *reminiscent) answer(body []byte) []byte {
	d := proto.NewDecoder(body)
	head := d.ReplyHead()
	c.mu.Lock()
	path := c.reads[head.Xid]
	c.mu.Unlock()
	if !strings.HasPrefix(unspelled(path), cachedRoot) || d.Err() != nil || head.Code != 0 {
		return body
	}
	c.replies[path] = append(c.replies[path], bytes.Clone(body))
	if len(c.replies[path])%3 > 0 {
		return body
	}
	return append(bytes.Clone(body[:proto.ReplyHeadSize]), c.replies[path][0][proto.ReplyHeadSize:]...)
}
