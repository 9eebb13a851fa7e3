package sim_test

import (
	"net"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/lock"
)

// The bugs of this file are connections that change what passes.

// newFlatterer doubles the session timeout in the answer to the handshake.
func newFlatterer(c net.Conn) net.Conn {
	greeted := false
	return &frames{Conn: c, change: func(body []byte) []byte {
		if d := proto.NewDecoder(body); !greeted {
			greeted = true
			if reply := d.ConnectReply(); d.Err() == nil {
				reply.Timeout *= 2
				return reply.Frame()[proto.LengthSize:]
			}
		}
		return body
	}}
}

// A silent connection loses the request that closes a session.
type silent struct{ net.Conn }

func (c *silent) Write(p []byte) (int, error) {
	if _, op, _ := request(p); op == proto.OpCloseSession {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A mute connection loses all that is sent once it has passed a number of bytes.
type mute struct {
	net.Conn
	sent int
}

func (c *mute) Write(p []byte) (int, error) {
	const most = 2000
	if c.sent += len(p); c.sent > most {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// The bugs of this file are of read/write locks.

// elsewhereToRead is a bug by which readers lock a path of their own.
func elsewhereToRead(_ *worker, f *framework.Client, h *handle) lock.Locker {
	return made(lock.NewRWMutex(f, h.target.path+"-other")).Read()
}

// lonely has readers wait until each other reader is gone.
func lonely(_ *worker, f *framework.Client, h *handle) lock.Locker {
	return made(lock.NewRWMutex(f, h.target.path)).Write()
}

// onlyReaders has all workers read, without a fault that would excuse a wait.
func onlyReaders(p *plan) {
	calm(p)
	t := newTarget("/sim/rw", "rw")
	p.targets = []*target{t}
	for i := range p.clients {
		workers := p.clients[i].workers
		for j := range workers {
			workers[j].kinds, workers[j].multi = []string{"read " + t.path}, nil
		}
	}
}

// A credulous connection sends a sync in place of each heartbeat, and answers the heartbeat with
// what the sync is answered: so a sync counts as a proof of the session.
type credulous struct {
	*frames

	mu    sync.Mutex
	syncs map[int32]bool // guarded by mu: the xids of those that are not answered
}

func newCredulous(c net.Conn) net.Conn {
	made := &credulous{syncs: map[int32]bool{}}
	made.frames = &frames{Conn: c, change: made.answer}
	return made
}

func (c *credulous) Write(p []byte) (int, error) {
	xid, op, body := request(p)
	if op != proto.OpMulti || !beats(body) {
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	c.syncs[xid] = true
	c.mu.Unlock()
	if _, err := c.Conn.Write(proto.RequestFrame(xid, proto.OpSync, proto.AppendString(nil, "/"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// beats reports whether the transaction is of one check alone.
func beats(d proto.Decoder) bool {
	first, _, _ := d.OpHead()
	d.Path()
	d.Int32() // the version
	_, over, _ := d.OpHead()
	return first == proto.OpCheck && over && d.End() == nil
}

// answer returns the body, or the answer to a heartbeat in place of that to its sync: the znode
// of the check does not exist.
func (c *credulous) answer(body []byte) []byte {
	d := proto.NewDecoder(body)
	head := d.ReplyHead()
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.Err() != nil || !c.syncs[head.Xid] {
		return body
	}
	delete(c.syncs, head.Xid)
	e := proto.NewEncoder()
	e.ReplyHead(head.Xid, head.Zxid, head.Code)
	e.OpHead(proto.OpError, false, proto.CodeNoNode)
	e.Int32(int32(proto.CodeNoNode))
	e.OpHead(proto.OpError, true, -1)
	return e.Body()
}
