package tap

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// Errors of [Tap.Ask].
var (
	// ErrUnsent is returned when there was no connection: nothing was sent.
	ErrUnsent = errors.New("no connection")
	// ErrUnanswered is returned when the connection ended between the request and its answer.
	ErrUnanswered = errors.New("connection ended before the answer")
	// ErrTooLarge is returned when the answer is longer than the limit. The connection remains.
	ErrTooLarge = errors.New("answer too large")
)

// firstQuestion is the xid of the first question; each next xid is less by one. The wire client's
// requests have no negative xid. The servers treat those down to -9 specially.
const firstQuestion = -1000

// An Answer is a server's reply to a question.
type Answer struct {
	Zxid int64
	Code proto.Code // 0, or the error
	Body []byte
}

// A question is a request of the Tap's own that has been sent.
type question struct {
	tree   string        // path of a recursive watch that is to be set; else ""
	limit  int           // the length that the answer's body may have, in bytes
	ended  chan struct{} // closed when answer and err are set
	answer Answer
	err    error
}

// end sets the outcome of the question, once.
func (q *question) end(answer Answer, err error) {
	q.answer, q.err = answer, err
	close(q.ended)
}

// Ask sends a request of the Tap's own on the connection in use, after all earlier writes, and
// returns the server's answer. The answer's body may have limit bytes. The wire client sees
// neither. For the lease clock they count as any request with that opcode and its reply. Ask
// returns when the answer is there or the connection has ended. Its errors are [ErrUnsent],
// [ErrUnanswered], [ErrTooLarge] and [ErrUnknownOpcode].
func (t *Tap) Ask(opcode proto.Opcode, body []byte, limit int) (Answer, error) {
	t.mu.Lock()
	c := t.conn
	t.mu.Unlock()
	if c == nil || !c.established.Load() {
		return Answer{}, ErrUnsent
	}
	if c.lacks(opcode) {
		return Answer{}, ErrUnknownOpcode
	}
	q := &question{limit: limit, ended: make(chan struct{})}
	if !c.pose(q, opcode, body) {
		return Answer{}, ErrUnsent
	}
	<-q.ended
	return q.answer, q.err
}

// pose sends q, unless the connection has ended. A failed write ends the connection.
func (c *Conn) pose(q *question, opcode proto.Opcode, body []byte) (sent bool) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	xid, ok := c.register(q, opcode, body)
	if !ok {
		return false
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(proto.RequestHeadSize+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	frame = binary.BigEndian.AppendUint32(frame, uint32(opcode))
	if err := c.write(append(frame, body...)); err != nil {
		c.tap.broke(c, err)
		_ = c.Close() // err has the cause
	}
	return true
}

// register records that q is about to be sent and gives it an xid.
func (c *Conn) register(q *question, opcode proto.Opcode, body []byte) (xid int32, ok bool) {
	t := c.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.over {
		return 0, false
	}
	if t.asked--; t.asked > firstQuestion || t.asked == math.MinInt32 {
		t.asked = firstQuestion
	}
	t.followTreeLocked(q, opcode, body)
	now := time.Now()
	t.clock.sent(now)
	c.inflight = append(c.inflight, request{xid: t.asked, opcode: opcode, sent: now, question: q})
	return t.asked, true
}

// abandonQuestions ends the questions that wait for an answer, because there will be none.
func (c *Conn) abandonQuestions() {
	c.tap.mu.Lock()
	c.over = true
	var left []*question
	for i, rq := range c.inflight {
		if rq.question != nil {
			left = append(left, rq.question)
			c.inflight[i].question = nil
		}
	}
	c.tap.mu.Unlock()
	for _, q := range left {
		q.end(Answer{}, ErrUnanswered)
	}
}

// followTreeLocked records a question that sets or removes a recursive watch. Up to ZooKeeper 3.8 a
// path has one kind of watch per connection (ZOOKEEPER-4466). A read that left a watch on that path
// would end the recursive watch, and the recursive watch ends the existing watches. So once the
// question is sent, reads of the path leave no watch. The recursive watch notifies of the same
// changes. It needs mu.
func (t *Tap) followTreeLocked(q *question, opcode proto.Opcode, body []byte) {
	path, _, ok := readString(body)
	switch {
	case !ok:
	case opcode == proto.OpAddWatch:
		q.tree = string(path)
		t.trees[q.tree] = struct{}{}
	case opcode == proto.OpRemoveWatches:
		delete(t.trees, string(path))
	}
}

// hasTreeLocked reports whether the server has a recursive watch on path, or whether one is being
// set. It needs mu.
func (t *Tap) hasTreeLocked(path []byte) bool {
	_, has := t.trees[string(path)]
	return has
}
