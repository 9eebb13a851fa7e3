package wire

import (
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A window bounds what is in flight on a connection: what was admitted and has no reply yet. It admits
// what the connection carries in its span, so that a heartbeat behind it returns in about that time, and
// never more than a server should have in memory for one client.
//
// Invariant: count <= maxInFlight, and bytes <= limit() or count == 1.
type window struct {
	span  time.Duration
	sizes *sizes
	count int
	reads int     // of data, of those
	bytes int     // of the requests, and of their replies as they are expected
	rate  float64 // bytes in a second that the connection has carried lately

	began   time.Time // the present sample of the rate
	carried int       // in it
	full    bool      // in it, something was not admitted because of what is in flight
	whole   bool      // nothing was in flight when it began
}

const (
	maxInFlight = 1000
	minWindow   = 64 << 10 // bytes: even a slow connection carries them soon
	maxWindow   = 4 << 20  // bytes: a server has the replies in memory
	firstRate   = 128 << 10
	sampleTime  = 10 * time.Millisecond
	leastSample = 10 * time.Microsecond
	writeSpan   = 5 * time.Millisecond
	minWrite    = 1 << 10
	maxWrite    = 16 << 10

	// windowFraction says which part of the session timeout the span is: a heartbeat goes out four times
	// in a session timeout.
	windowFraction = 16
)

func newWindow(timeout time.Duration, expected *sizes) window {
	return window{span: timeout / windowFraction, sizes: expected, rate: firstRate}
}

// weigh says what a request costs that is sent now, as far as is known: its frame, and the frame of its reply.
func (w *window) weigh(rq *Request) {
	reply := rq.Expect
	if reply == 0 {
		reply = w.sizes.expected(rq.Opcode)
	}
	rq.cost = rq.size + proto.LengthSize + proto.ReplyHeadSize + reply
}

// limit returns how many bytes may be in flight.
func (w *window) limit() int {
	return int(min(max(w.rate*w.span.Seconds(), minWindow), maxWindow))
}

// admits reports whether a request may be sent now.
func (w *window) admits(rq *Request) bool {
	if rq.Opcode == proto.OpGetData && w.reads >= perSeen*(1+w.sizes.seen) {
		return false
	}
	ok := w.count == 0 || w.count < maxInFlight && w.bytes+rq.cost <= w.limit()
	w.full = w.full || !ok && (w.count == maxInFlight || w.bytes >= w.limit()/2) // else that request is large
	return ok
}

// due returns how long what is in flight, and that many bytes more, take by the rate.
func (w *window) due(more int) time.Duration {
	return time.Duration(float64(w.bytes+more) / w.rate * float64(time.Second))
}

// write returns how many bytes one write has: as many as the connection carries soon, so that what is
// behind them, or in front of them in the same write, need not wait for long.
func (w *window) write() int {
	return int(min(max(w.rate*writeSpan.Seconds(), minWrite), maxWrite))
}

// answered returns when the reply to a request with that many bytes may be there, with a margin.
func (w *window) answered(bytes int, now time.Time) time.Time {
	return now.Add(2*w.due(bytes) + min(writeSpan, time.Duration(maxWrite/w.rate*float64(time.Second))))
}

// enter records that a request was sent.
func (w *window) enter(rq *Request, now time.Time) {
	if w.count == 0 {
		w.began, w.carried, w.full, w.whole = now, 0, false, true
	}
	w.add(rq, 1)
}

// add counts a request in, or out if n is -1.
func (w *window) add(rq *Request, n int) {
	w.count += n
	w.bytes += n * rq.cost
	if rq.Opcode == proto.OpGetData {
		w.reads += n
	}
}

// leave records the reply to a request, and how many bytes the two carried.
func (w *window) leave(rq *Request, carried int, now time.Time) {
	w.add(rq, -1)
	w.carried += carried
	if took := now.Sub(w.began); took >= sampleTime || w.count == 0 && w.whole {
		w.learn(float64(w.carried) / max(took, leastSample).Seconds())
		w.began, w.carried, w.full, w.whole = now, 0, false, false // replies that came together end it
	}
}

// learn takes a sample of the rate. A connection that was not in full use may carry more. One that carried
// much more before, as in the other direction, comes down from where the limit begins to follow.
func (w *window) learn(rate float64) {
	switch {
	case rate > w.rate:
		w.rate = rate
	case w.full:
		w.rate = (min(w.rate, maxWindow/w.span.Seconds()) + rate) / 2
	}
}

// sizes are what replies of unknown length are expected to have, in bytes: as long as the longest of late.
type sizes struct {
	data, names int
	seen        int // replies with data
}

const (
	unknownData  = 1 << 20 // a znode's
	unknownNames = 16 << 10
	otherReply   = 256 // other replies are shorter, transactions apart
)

func unknownSizes() sizes { return sizes{data: unknownData, names: unknownNames} }

// of returns what is kept for the replies to an operation; nil for others.
func (s *sizes) of(op proto.Opcode) *int {
	switch op {
	case proto.OpGetData:
		return &s.data
	case proto.OpGetChildren, proto.OpGetChildren2:
		return &s.names
	}
	return nil
}

// expected returns the length of a reply to an operation.
func (s *sizes) expected(op proto.Opcode) int {
	if size := s.of(op); size != nil {
		return *size
	}
	return otherReply
}

// perSeen is how many reads of data may be in flight, or in one request, for each that was answered: the first
// replies say little about the others.
const perSeen = 2

// learn records the length of a reply to an operation.
func (s *sizes) learn(op proto.Opcode, n int) {
	if size := s.of(op); size != nil {
		*size = grown(*size, n)
	}
	if op == proto.OpGetData {
		s.seen++
	}
}

// grown returns the new expectation after a reply of n bytes. The first expectation is not of a reply.
func grown(size, n int) int {
	if size == unknownData || n > size {
		return n
	}
	return size - (size-n)/8
}
