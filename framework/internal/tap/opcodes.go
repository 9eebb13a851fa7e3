package tap

import (
	"errors"
	"io"
	"maps"
	"sync"
	"syscall"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// ErrUnknownOpcode is the error of a [Request] for an operation that the server is known not to know. It was not
// sent.
var ErrUnknownOpcode = errors.New("the server does not know the operation")

// unknownFor is for how long an operation is not sent again to servers that do not know it. Each such
// request costs the connection, which leases may depend on. So an operation is tried again only on a new
// connection, as to a server of a newer version.
const unknownFor = 10 * time.Minute

// enoughCloses is how many connections in a row have to end instead of a reply to an operation, until it
// counts as unknown. One may end by chance.
const enoughCloses = 2

// Opcodes keeps which operations the servers of one client do not know. Their versions are alike, so what
// one does not know is not sent to the others either. Servers that do not know an operation reply so and
// close the connection. Some of ClickHouse's close it without a reply.
type Opcodes struct {
	// OnMissing is called without a lock, once for each operation that a server turns out not to know.
	// It must not block. It may be nil.
	OnMissing func(server string, opcode proto.Opcode)

	mu       sync.Mutex                 // guards following
	unknown  map[proto.Opcode]time.Time // when a server showed that it does not know it
	closes   map[proto.Opcode]int       // connections in a row that ended instead of a reply
	known    map[proto.Opcode]bool      // a server has replied to it
	reported map[proto.Opcode]bool
}

// optional reports whether a server may lack the operation and still serve the client. The others are
// part of ZooKeeper since 3.4.
func optional(op proto.Opcode) bool {
	switch op {
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpAddWatch, proto.OpRemoveWatches,
		proto.OpGetEphemerals, proto.OpWhoAmI, proto.OpReconfig, proto.OpMultiRead:
		return true
	}
	return false
}

// Lacks reports whether the servers are known not to know the operation.
func (o *Opcodes) Lacks(op proto.Opcode) bool {
	if o == nil || !optional(op) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, unknown := o.unknown[op]
	return unknown
}

// forget makes operations known again that have been unknown for long.
func (o *Opcodes) forget() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.unknown, func(_ proto.Opcode, at time.Time) bool { return time.Since(at) >= unknownFor })
}

// replied records the code in a reply to the operation.
func (o *Opcodes) replied(server string, op proto.Opcode, code proto.Code) {
	if o != nil && optional(op) && o.learnReply(op, code) {
		o.OnMissing(server, op)
	}
}

func (o *Opcodes) learnReply(op proto.Opcode, code proto.Code) (report bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if code == proto.CodeUnimplemented {
		setIn(&o.unknown, op, time.Now())
		return o.reportsLocked(op)
	}
	if !o.known[op] {
		setIn(&o.known, op, true)
		delete(o.closes, op)
	}
	return false
}

// closed records that the server closed a connection with the requests in flight. The first operation
// that no server is known to know is the suspect: a request ahead of it may have lost its reply by that
// close.
func (o *Opcodes) closed(server string, inFlight []proto.Opcode) {
	if o == nil {
		return
	}
	for _, op := range inFlight {
		if !optional(op) || o.knows(op) {
			continue
		}
		if o.learnClose(op) {
			o.OnMissing(server, op)
		}
		return
	}
}

func (o *Opcodes) knows(op proto.Opcode) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[op]
}

func (o *Opcodes) learnClose(op proto.Opcode) (report bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	setIn(&o.closes, op, o.closes[op]+1)
	if o.closes[op] < enoughCloses {
		return false
	}
	setIn(&o.unknown, op, time.Now())
	return o.reportsLocked(op)
}

// reportsLocked reports whether OnMissing is to be called: once for an operation. It needs mu.
func (o *Opcodes) reportsLocked(op proto.Opcode) bool {
	if o.reported[op] || o.OnMissing == nil {
		return false
	}
	setIn(&o.reported, op, true)
	return true
}

func setIn[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}

// UseOpcodes makes the connection, which leads to the server, leave out what the server does not know.
// It has to be called before the connection is used.
func (c *Conn) UseOpcodes(o *Opcodes, server string) {
	o.forget()
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.opcodes, c.server = o, server
}

// lacks reports whether the server of the connection is known not to know the operation.
func (c *Conn) lacks(op proto.Opcode) bool { return c.opcodes.Lacks(op) }

// Lacks reports whether the server of the present connection is known not to know the operation.
func (t *Tap) Lacks(op proto.Opcode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn != nil && t.conn.lacks(op)
}

// Doubtful reports whether the servers may not know the operation: they seem to lack another one, and have
// not replied to this one yet.
func (t *Tap) Doubtful(op proto.Opcode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn != nil && t.conn.opcodes.doubtful(op)
}

func (o *Opcodes) doubtful(op proto.Opcode) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, unknown := o.unknown[op]
	return !o.known[op] && !unknown && len(o.closes)+len(o.unknown) > 0
}

// suspect records, once, which operation may have made the server close the connection, if err of a read
// or a write says that it did.
func (c *Conn) suspect(err error) {
	for _, closed := range []error{io.EOF, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, closed) {
			c.suspected.Do(func() { c.opcodes.closed(c.server, c.opcodesInFlight()) })
			return
		}
	}
}

// opcodesInFlight returns the opcodes of the requests without a reply, the oldest first.
func (c *Conn) opcodesInFlight() (all []proto.Opcode) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	for _, rq := range c.inflight.all() {
		all = append(all, rq.Opcode)
	}
	return all
}
