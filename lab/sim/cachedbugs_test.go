package sim_test

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/cache"
)

// cacheBugs are, for each guarantee of caches, what its validators have to find.
func cacheBugs() []deliberate {
	unheard := unheard(cachedRoot, 3)
	const losing = "a connection loses every third event of the caches' tree"
	return []deliberate{
		{truth, "a server answers a read from its memory", "after that of", func() bug {
			return onConnections(newReminiscent, calm)
		}},
		{everyChange, "a listener misses every fifth event of a cache", "", func() bug { return bug{events: inattentive} }},
		{complete, losing, "Sync has returned", unheard},
		{oneMoment, losing, "no state since", unheard},
		{knownStaleness, losing, "nothing went wrong", unheard},
		{leavesNothing, "a connection removes another watch than the caches'", "notified", func() bug {
			return onConnections(func(c net.Conn) net.Conn { return &clinging{c} }, nil)
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
func unheard(root string, of int) func() bug {
	return func() bug { return onConnections(func(c net.Conn) net.Conn { return newUnheard(c, root, of) }, calm) }
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
