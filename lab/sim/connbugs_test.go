package sim_test

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// The bugs of this file are connections that change what passes.

// A flatterer doubles the session timeout in the answer to the handshake.
type flatterer struct {
	net.Conn
	passed int
}

func (c *flatterer) Read(p []byte) (int, error) {
	const at = 8 // behind the frame's length and the protocol's version
	n, err := c.Conn.Read(p)
	if from := at - c.passed; from >= 0 && from+4 <= n {
		counted := p[from : from+4]
		binary.BigEndian.PutUint32(counted, 2*binary.BigEndian.Uint32(counted))
	}
	c.passed += n
	return n, err
}

// A silent connection loses the request that closes a session.
type silent struct{ net.Conn }

func (c *silent) Write(p []byte) (int, error) {
	const closeSession = -11
	if opcode(p) == closeSession {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// opcode returns the operation of a request's frame, 0 if it is none: the wire client writes a
// frame at once.
func opcode(p []byte) int32 {
	const at = 8 // behind the frame's length and the xid
	if len(p) < at+4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(p[at:]))
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
	syncs map[uint32]bool // guarded by mu: the xids of those that are not answered
}

const (
	syncOp  = 9
	checkOp = 13
	multiOp = 14
	frameAt = 4 // behind a frame's length
)

var big = binary.BigEndian

func newCredulous(c net.Conn) net.Conn {
	made := &credulous{syncs: map[uint32]bool{}}
	made.frames = &frames{Conn: c, change: made.answer}
	return made
}

func (c *credulous) Write(p []byte) (int, error) {
	if !beats(p) {
		return c.Conn.Write(p)
	}
	xid := big.Uint32(p[frameAt:])
	c.mu.Lock()
	c.syncs[xid] = true
	c.mu.Unlock()
	frame := big.AppendUint32(nil, 13)
	frame = big.AppendUint32(frame, xid)
	frame = big.AppendUint32(frame, syncOp)
	frame = big.AppendUint32(frame, 1)
	if _, err := c.Conn.Write(append(frame, '/')); err != nil {
		return 0, err
	}
	return len(p), nil
}

// beats reports whether the frame is a transaction of one check alone.
func beats(p []byte) bool {
	const (
		op     = frameAt + 8 // behind xid and opcode: type, done, error of the first operation
		path   = op + 9
		header = 9
	)
	if opcode(p) != multiOp || len(p) < path+4 || big.Uint32(p[op:]) != checkOp {
		return false
	}
	end := path + 4 + int(big.Uint32(p[path:])) + 4 // behind the path and the version
	return len(p) == end+header && big.Uint32(p[end:]) == 1<<32-1
}

// answer returns the frame, or the answer to a heartbeat in place of that to its sync: the znode
// of the check does not exist.
func (c *credulous) answer(frame []byte) []byte {
	const head, noNode = frameAt + 16, -101 & (1<<32 - 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(frame) < head || !c.syncs[big.Uint32(frame[frameAt:])] {
		return frame
	}
	delete(c.syncs, big.Uint32(frame[frameAt:]))
	p := append([]byte{}, frame[:head]...)
	result := func(done byte, code uint32) {
		p = big.AppendUint32(p, 1<<32-1)
		p = append(p, done)
		p = big.AppendUint32(p, code)
	}
	result(0, noNode)
	p = big.AppendUint32(p, noNode)
	result(1, 1<<32-1)
	big.PutUint32(p, uint32(len(p)-frameAt))
	return p
}
