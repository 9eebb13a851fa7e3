package wire

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// Errors of a [Request] that has ended.
var (
	// ErrUnsent is the error if there was no connection, or it ended before the request was written.
	ErrUnsent = errors.New("no connection")
	// ErrUnanswered is the error if the connection ended between the request and its answer.
	ErrUnanswered = errors.New("connection ended before the answer")
	// ErrWithdrawn is the error of a request that was taken back before it was written.
	ErrWithdrawn = errors.New("not sent")
	// ErrRequestTooLarge is the error of a request that is longer than servers accept: nothing was sent.
	ErrRequestTooLarge = errors.New("request longer than servers accept")
	// ErrTooLarge is the error if the answer is longer than the limit. The connection remains.
	ErrTooLarge = errors.New("answer longer than its limit")
)

// firstXid is the xid of the first Request; each next xid is less by one. The servers treat those from -1 down to
// -9 specially.
const firstXid = -1000

// An Answer is a server's reply to a Request.
type Answer struct {
	Zxid int64
	Code proto.Code // 0, or the error
	Body []byte
}

// A Request is a request of the session and, once it has ended, its answer. [Wire.Send] sends it, once.
type Request struct {
	Opcode proto.Opcode
	Body   []byte       // must not be changed
	Limit  int          // the length that the answer's body may have, in bytes
	Expect Length       // of the answer's body
	Reads  int          // how many reads a multiRead has
	Read   proto.Opcode // what they are
	Class  Class
	Call   *Call     // nil if its call has no other request
	Watch  bool      // it is a read that leaves a watch; the last byte of Body is its watch flag
	By     time.Time // when its caller leaves; zero for never
	Owner  Owner     // may be nil

	sending                      // guarded by Wire.mu until the request has ended
	before, behind *Request      // in its lane
	done           chan struct{} // closed when answer and err are set
	answer         Answer
	err            error
}

// A Length is what an answer's body is expected to have.
type Length struct {
	Bytes int
	Known bool // if not, it may have as much as the longest of such answers lately
}

// An Owner has a Request. Ended is called, without a lock, when the request was sent and has ended. It must not block.
type Owner interface{ Ended() }

// A sending is how a request was sent.
type sending struct {
	state state
	xid   int32
	sent  time.Time // when its write began
	size  int       // of its frame
	reply int       // of its reply's frame, see window.estimate
	tree  string    // path of a recursive watch that it sets; else ""
}

type state uint8

const (
	waiting state = iota + 1 // in the queue
	writing                  // its write has begun
	written                  // the socket has it
	over                     // it has ended, or is about to
)

// reads returns how many znodes' data the request reads.
func (rq *Request) reads() int {
	if rq.kind() != proto.OpGetData {
		return 0
	}
	return max(1, rq.Reads)
}

// kind returns the operation of which the request has one or more.
func (rq *Request) kind() proto.Opcode {
	if rq.Reads > 0 {
		return rq.Read
	}
	return rq.Opcode
}

// Done returns a channel that is closed when the request has ended.
func (rq *Request) Done() <-chan struct{} { return rq.done }

// Answer returns the answer of a request that has ended. Its errors are [ErrUnsent], [ErrUnanswered],
// [ErrWithdrawn] and [ErrTooLarge].
func (rq *Request) Answer() (Answer, error) { return rq.answer, rq.err }

// Refuse ends a request that is not sent, because of err.
func (rq *Request) Refuse(err error) {
	rq.done, rq.err = make(chan struct{}), err
	close(rq.done)
}

// end sets the outcome of the request. Who has set its state to over calls it, once.
func (rq *Request) end(a Answer, err error) {
	rq.answer, rq.err = a, err
	close(rq.done)
	if rq.Owner != nil {
		rq.Owner.Ended()
	}
}

// Send sends the request on the connection in use, after all earlier requests of its class, but for what [Call]
// says. It does not block: a goroutine of the connection writes, once the window admits the request. If there is no
// connection, the request has ended, and Send returns false without a call of the Owner.
func (w *Wire) Send(rq *Request) bool {
	w.mu.Lock()
	c := w.openLocked(rq.Class)
	if c == nil {
		w.mu.Unlock()
		rq.Refuse(ErrUnsent)
		return false
	}
	rq.done = make(chan struct{})
	rq.state, rq.size = waiting, proto.LengthSize+proto.RequestHeadSize+len(rq.Body)
	c.queue.add(rq)
	w.mu.Unlock()
	c.wake()
	return true
}

// Withdraw takes back a request that was not written yet, and reports whether it did. Then the request has
// ended with [ErrWithdrawn], and has certainly no effect.
func (w *Wire) Withdraw(rq *Request) bool {
	if !w.TakeBack(rq) {
		return false
	}
	rq.end(Answer{}, ErrWithdrawn)
	return true
}

// TakeBack is Withdraw for a request without callers: it does not end, and its Owner is not called.
func (w *Wire) TakeBack(rq *Request) bool {
	w.mu.Lock()
	if rq.state != waiting {
		w.mu.Unlock()
		return false
	}
	c := w.conn
	c.queue.remove(rq)
	rq.state = over
	w.mu.Unlock()
	c.wake() // it may have been in the way of others
	return true
}

// Ask sends a request, and returns its answer when that is there or the connection has ended. The
// errors are those of [Request.Answer].
func (w *Wire) Ask(rq *Request) (Answer, error) {
	w.Send(rq)
	<-rq.Done()
	return rq.Answer()
}

// What the replies to the reads of one request, and of a call, are expected to have at most: while one arrives, the
// server makes the next. A fast connection carries more soon, and a small request waits little for that.
const (
	maxTogether = maxAhead / 2
	maxAhead    = 1 << 20
	aheadSpan   = 100 * time.Millisecond
	firstAhead  = 2 // requests of a call, while perSeen keeps them small
)

// Together returns how many reads one request should have at most: their replies are what the connection carries
// soon, because a heartbeat has to wait for the rest of a reply. Each is expected to have such a length.
func (w *Wire) Together(op proto.Opcode, each Length) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := minWindow
	if w.conn != nil {
		most = w.conn.window.down.limit(w.conn.window.span)
	}
	if !w.sizes.trust(each) && w.sizes.of(op).guess > 0 { // errors alone: the guess is careful enough
		most = min(most, maxAhead)
	} else {
		most = min(most, maxTogether)
	}
	return max(1, most/max(1, w.sizes.expected(op, 1, each)))
}

// Ahead returns how many requests of so many reads a call should have under way at most: other requests wait for them.
// The reply to each read is expected to have such a length.
func (w *Wire) Ahead(op proto.Opcode, reads int, each Length) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	soon := 0
	if w.conn != nil {
		soon = w.conn.window.down.limit(aheadSpan)
	}
	replies := max(1, reads*w.sizes.expected(op, 1, each))
	ahead := max(1, (soon+replies/2)/replies, maxAhead/replies) // to the nearest
	if op == proto.OpGetData && reads >= perSeen*w.sizes.seen { // the next ones may have far more reads
		return min(ahead, firstAhead)
	}
	return ahead
}

// appendTo appends the frame of rq to b.
func (rq *Request) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(rq.size-proto.LengthSize))
	b = binary.BigEndian.AppendUint32(b, uint32(rq.xid))
	b = binary.BigEndian.AppendUint32(b, uint32(rq.Opcode))
	b = append(b, rq.Body...)
	if rq.Watch {
		b[len(b)-1] = 1
	}
	return b
}

// endAll ends requests whose state is over. Those that were not written have no effect.
func endAll(left []*Request) {
	for _, rq := range left {
		err := ErrUnanswered
		if rq.sent.IsZero() {
			err = ErrUnsent
		}
		rq.end(Answer{}, err)
	}
}

// followTreeLocked records a request that sets or removes a recursive watch. Up to ZooKeeper 3.8 a
// path has one kind of watch per connection (ZOOKEEPER-4466). A read that left a watch on that path
// would end the recursive watch, and the recursive watch ends the existing watches. So once the
// request is sent, reads of the path leave no watch. The recursive watch notifies of the same
// changes. A removal of one-shot watches would take the recursive watch too, so it removes nothing there.
// It needs mu.
func (w *Wire) followTreeLocked(rq *Request) {
	if rq.Opcode != proto.OpAddWatch && rq.Opcode != proto.OpRemoveWatches && !rq.Watch {
		return
	}
	d := proto.NewDecoder(rq.Body)
	path := d.Text()
	_, has := w.trees[string(path)]
	switch {
	case d.Err() != nil:
	case rq.Opcode == proto.OpRemoveWatches && rq.Class == Last && has:
		rq.Opcode = proto.OpCheckWatches
	case rq.Opcode == proto.OpAddWatch:
		rq.tree = string(path)
		w.trees[rq.tree] = struct{}{}
	case rq.Opcode == proto.OpRemoveWatches:
		delete(w.trees, string(path))
	case has:
		rq.Watch = false
	}
}
