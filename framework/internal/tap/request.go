package tap

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// Errors of a [Request] that has ended.
var (
	// ErrUnsent is the error if there was no connection: nothing was sent.
	ErrUnsent = errors.New("no connection")
	// ErrUnanswered is the error if the connection ended between the request and its answer.
	ErrUnanswered = errors.New("connection ended before the answer")
	// ErrRequestTooLarge is the error of a request that is longer than servers accept: nothing was sent.
	ErrRequestTooLarge = errors.New("request too large")
	// ErrTooLarge is the error if the answer is longer than the limit. The connection remains.
	ErrTooLarge = errors.New("answer too large")
)

// firstXid is the xid of the first Request; each next xid is less by one. The wire client's requests
// have no negative xid. The servers treat those down to -9 specially.
const firstXid = -1000

// An Answer is a server's reply to a Request.
type Answer struct {
	Zxid int64
	Code proto.Code // 0, or the error
	Body []byte
}

// A Request is a request of the session and, once it has ended, its answer. [Tap.Send] sends it, once.
type Request struct {
	Opcode proto.Opcode
	Body   []byte // must not be changed
	Limit  int    // the length that the answer's body may have, in bytes
	Watch  bool   // it is a read that leaves a watch; the last byte of Body is its watch flag
	OnEnd  func() // called when a sent request has ended, without a lock; must not block; may be nil

	// set by Send, then guarded by Tap.mu until the request has ended
	xid  int32
	sent time.Time     // zero until it is written
	tree string        // path of a recursive watch that it sets; else ""
	done chan struct{} // closed when answer and err are set; nil for a request of the wire client
	answer
}

type answer struct {
	answer Answer
	err    error
}

// Done returns a channel that is closed when the request has ended.
func (rq *Request) Done() <-chan struct{} { return rq.done }

// Answer returns the answer of a request that has ended. Its errors are [ErrUnsent],
// [ErrUnanswered] and [ErrTooLarge].
func (rq *Request) Answer() (Answer, error) { return rq.answer.answer, rq.err }

// end sets the outcome of the request, once.
func (rq *Request) end(a Answer, err error) {
	rq.answer = answer{a, err}
	close(rq.done)
	if rq.OnEnd != nil {
		rq.OnEnd()
	}
}

// Send sends the request on the connection in use, after all earlier requests. It does not block: a
// goroutine of the connection writes. The wire client sees neither the request nor its answer. If
// nothing is sent, the request has ended, and Send returns false without a call of OnEnd.
func (t *Tap) Send(rq *Request) bool {
	rq.done = make(chan struct{})
	t.mu.Lock()
	err := t.sendLocked(rq)
	t.mu.Unlock()
	if err != nil {
		rq.err = err
		close(rq.done)
	}
	return err == nil
}

// Open reports whether there is a connection for requests.
func (t *Tap) Open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.openLocked() != nil
}

// openLocked returns the connection for requests, or nil. It needs mu.
func (t *Tap) openLocked() *Conn {
	if t.conn == nil || !t.conn.established.Load() || t.conn.over || t.conn.refusal != nil || t.ended != nil {
		return nil
	}
	return t.conn
}

// Refuse ends a request that is not sent, because of err.
func (rq *Request) Refuse(err error) {
	rq.done, rq.err = make(chan struct{}), err
	close(rq.done)
}

// sendLocked is Send without the end of a request that is not sent. It needs mu.
func (t *Tap) sendLocked(rq *Request) error {
	c := t.openLocked()
	if c == nil {
		return ErrUnsent
	}
	if t.asked--; t.asked > firstXid || t.asked == math.MinInt32 {
		t.asked = firstXid
	}
	t.followTreeLocked(rq)
	rq.xid = t.asked
	c.inflight.add(rq)
	c.queueLocked(outFrame{rq: rq, watch: rq.Watch && !t.hasTreeLocked(rq.Body)})
	return nil
}

// Ask sends a request, and returns its answer when that is there or the connection has ended. The
// errors are those of [Request.Answer].
func (t *Tap) Ask(opcode proto.Opcode, body []byte, limit int) (Answer, error) {
	rq := &Request{Opcode: opcode, Body: body, Limit: limit}
	t.Send(rq)
	<-rq.Done()
	return rq.Answer()
}

// abandonRequests ends the requests that wait for an answer, because there will be none.
func (c *Conn) abandonRequests() {
	c.tap.mu.Lock()
	if !c.over {
		c.over = true
		close(c.ended)
	}
	left := c.inflight
	c.inflight = requestQueue{}
	c.tap.mu.Unlock()
	for _, rq := range left.all() {
		if rq.done != nil {
			rq.end(Answer{}, ErrUnanswered)
		}
	}
}

// A requestQueue has requests in the order in which they were added.
type requestQueue struct {
	requests []*Request
	first    int // those before it have been removed
}

func (q *requestQueue) all() []*Request { return q.requests[q.first:] }

// oldest returns the first request, or nil.
func (q *requestQueue) oldest() *Request {
	if q.first == len(q.requests) {
		return nil
	}
	return q.requests[q.first]
}

// add appends a request. It makes room by what was removed, before it allocates.
func (q *requestQueue) add(rq *Request) {
	if len(q.requests) == cap(q.requests) && q.first > len(q.requests)/2 {
		n := copy(q.requests, q.all())
		clear(q.requests[n:])
		q.requests, q.first = q.requests[:n], 0
	}
	q.requests = append(q.requests, rq)
}

// remove removes a request, and reports whether it was there.
func (q *requestQueue) remove(rq *Request) bool {
	i := slices.Index(q.all(), rq)
	switch {
	case i < 0:
		return false
	case i > 0:
		q.requests = slices.Delete(q.requests, q.first+i, q.first+i+1)
		return true
	}
	q.requests[q.first] = nil
	if q.first++; q.first == len(q.requests) {
		q.requests, q.first = q.requests[:0], 0
	}
	return true
}

// followTreeLocked records a request that sets or removes a recursive watch. Up to ZooKeeper 3.8 a
// path has one kind of watch per connection (ZOOKEEPER-4466). A read that left a watch on that path
// would end the recursive watch, and the recursive watch ends the existing watches. So once the
// request is sent, reads of the path leave no watch. The recursive watch notifies of the same
// changes. It needs mu.
func (t *Tap) followTreeLocked(rq *Request) {
	switch path, ok := readString(rq.Body); {
	case !ok:
	case rq.Opcode == proto.OpAddWatch:
		rq.tree = string(path)
		t.trees[rq.tree] = struct{}{}
	case rq.Opcode == proto.OpRemoveWatches:
		delete(t.trees, string(path))
	}
}

// hasTreeLocked reports whether the server has a recursive watch on the path of a read, or whether one
// is being set. It needs mu.
func (t *Tap) hasTreeLocked(read []byte) bool {
	path, _ := readString(read)
	_, has := t.trees[string(path)]
	return has
}
