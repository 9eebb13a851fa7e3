package sim_test

import (
	"encoding/binary"
	"net"
	"sync"
)

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
