package wire

import (
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A window bounds what is in flight on a connection: what was admitted and has no reply yet. It admits
// what the connection carries in its span, so that a heartbeat behind it returns in about that time, and
// never more than a server should have in memory for one client. The directions have limits of their own:
// a link may be fast in one and slow in the other.
//
// Invariant: count <= maxInFlight, and in each direction bytes <= limit(), and maxWindow in both, or count == 1.
// A reply that turns out to be longer than it was expected to be counts as what it has, beyond these, too.
type window struct {
	span     time.Duration
	sizes    *sizes
	count    int
	reads    int       // of data, of those
	up, down direction // requests, and their replies

	began time.Time // the present sample of the rates
	whole bool      // nothing was in flight when it began
}

// A direction of a connection has what is in flight in it, and what it carries.
type direction struct {
	bytes    int     // of replies, as they are expected
	rate     float64 // bytes in a second that it has carried lately
	measured int     // how many bytes that is known from
	carried  int     // in the present sample
	expected int     // what was expected of that
	full     bool    // in it, something was not admitted because of what is in flight
}

const (
	maxInFlight = 1000
	minWindow   = 64 << 10 // bytes: even a slow connection carries them soon
	maxWindow   = 4 << 20  // bytes: a server has requests and replies in memory
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
	first := direction{rate: firstRate}
	return window{span: timeout / windowFraction, sizes: expected, up: first, down: first}
}

// estimate says how long the reply's frame is expected to be of a request that is sent now.
func (w *window) estimate(rq *Request) {
	rq.reply = proto.LengthSize + proto.ReplyHeadSize + w.sizes.expected(rq.kind(), max(1, rq.Reads), rq.Expect)
}

// limit returns how many bytes may be in flight.
func (d *direction) limit(span time.Duration) int {
	return int(min(max(d.rate*span.Seconds(), minWindow), maxWindow))
}

// admits reports whether the direction has room for n bytes.
func (d *direction) admits(n int, span time.Duration) bool {
	limit := d.limit(span)
	ok := d.bytes+n <= limit
	d.full = d.full || !ok && d.bytes >= limit/2 // else it is n that is large
	return ok
}

// fits reports whether a request is no larger than what may be in flight.
func (w *window) fits(rq *Request) bool {
	return rq.size <= w.up.limit(w.span) && rq.reply <= w.down.limit(w.span) && rq.size+rq.reply <= maxWindow
}

// admits reports whether a request may be sent now.
func (w *window) admits(rq *Request) bool {
	if n := rq.reads(); n > 0 && w.reads > 0 && w.reads+n > perSeen*(1+w.sizes.seen) {
		return false
	}
	if w.count >= maxInFlight { // proofs are not counted against it, and are counted in
		w.fill()
		return false
	}
	up, down := w.up.admits(rq.size, w.span), w.down.admits(rq.reply, w.span)
	both := w.up.bytes + w.down.bytes
	fits := both+rq.size+rq.reply <= maxWindow
	if !fits && both >= maxWindow/2 {
		w.fill()
	}
	return w.count == 0 || up && down && fits
}

// fill records that something is not sent because of what is in flight: of the slower direction.
func (w *window) fill() {
	if float64(w.up.bytes)/w.up.rate > float64(w.down.bytes)/w.down.rate {
		w.up.full = true
	} else {
		w.down.full = true
	}
}

// takes returns how long so many bytes take by the rates.
func (w *window) takes(up, down int) time.Duration {
	return time.Duration(max(float64(up)/w.up.rate, float64(down)/w.down.rate) * float64(time.Second))
}

// due returns how long what is in flight takes.
func (w *window) due() time.Duration { return w.takes(w.up.bytes, w.down.bytes) }

// write returns how many bytes one write has: as many as the connection carries soon, so that what is
// behind them, or in front of them in the same write, need not wait for long.
func (w *window) write() int {
	return int(min(max(w.up.rate*writeSpan.Seconds(), minWrite), maxWrite))
}

// guesses reports whether only a guess says that a request takes too long: less is in flight than the request itself
// has, and that is mostly its reply, whose length is not known, or much more than the rate is known from.
func (w *window) guesses(rq *Request) bool {
	unknown := rq.size > 2*w.up.measured || w.takes(0, rq.reply) > w.takes(rq.size, 0)
	return unknown && w.due() < w.takes(rq.size, rq.reply)
}

// answered returns when the reply to a request may be there, with a margin.
func (w *window) answered(rq *Request, now time.Time) time.Time {
	margin := min(writeSpan, time.Duration(maxWrite/max(w.up.rate, w.down.rate)*float64(time.Second)))
	return now.Add(2*w.takes(w.up.bytes+rq.size, w.down.bytes+rq.reply) + margin)
}

// endsLate reports whether a call that has not begun would end after its caller has left. How long one znode is may be a
// guess; the mean of many is known.
func (w *window) endsLate(rq *Request, now time.Time) bool {
	if !rq.waits() || rq.By.IsZero() || rq.kind() != proto.OpGetData || w.sizes.seen < generation {
		return false
	}
	return now.Add(w.takes(0, w.down.bytes+int(w.sizes.mean*float64(rq.Call.Reads)))).After(rq.By)
}

// enter records that a request was sent.
func (w *window) enter(rq *Request, now time.Time) {
	if w.count == 0 {
		w.begin(now, true)
	}
	w.add(rq, 1)
}

// begin begins a sample of the rates.
func (w *window) begin(now time.Time, whole bool) {
	w.began, w.whole = now, whole
	for _, d := range [...]*direction{&w.up, &w.down} {
		d.carried, d.expected, d.full = 0, 0, false
	}
}

// add counts a request in, or out if n is -1.
func (w *window) add(rq *Request, n int) {
	w.count += n
	w.up.bytes += n * rq.size
	w.down.bytes += n * rq.reply
	w.reads += n * rq.reads()
}

// expect records that the reply to a request begins to arrive, whose frame has so many bytes. It may have far more than
// such replies had lately, and what is behind it waits for that.
func (w *window) expect(rq *Request, reply int) {
	if more := reply - rq.reply; more > 0 {
		w.down.bytes += more
		rq.reply = reply
	}
}

// leave records the reply to a request, whose frame has so many bytes.
func (w *window) leave(rq *Request, reply int, now time.Time) {
	w.add(rq, -1)
	w.up.carry(rq.size, rq.size)
	w.down.carry(reply, rq.reply)
	if took := now.Sub(w.began); took >= sampleTime || w.count == 0 && w.whole {
		took = max(took, leastSample)
		w.up.learn(took, w.span)
		w.down.learn(took, w.span)
		w.begin(now, false) // replies that came together end it
	}
}

// carry records what has arrived, and what was expected of it.
func (d *direction) carry(n, expected int) {
	d.carried += n
	d.expected += expected
}

// learn ends a sample of the rate, which took that long. A direction that was not in full use may carry more; nor was
// it in full use if far more was expected than came. One that carried much more before comes down from where the
// limit begins to follow.
func (d *direction) learn(took, span time.Duration) {
	rate := float64(d.carried) / took.Seconds()
	switch {
	case rate > d.rate:
		d.rate = rate
	case d.full && d.expected <= 2*d.carried:
		d.rate = (min(d.rate, maxWindow/span.Seconds()) + rate) / 2
	default:
		return
	}
	d.measured = max(d.carried, d.measured/2)
}

// sizes are what replies of unknown length are expected to have, in bytes.
type sizes struct {
	data, names, others recent
	seen                int     // replies with data
	mean                float64 // length of the latest of those
}

func unknownSizes() sizes {
	return sizes{data: recent{guess: unknownData}, names: recent{guess: unknownNames}, others: recent{guess: otherReply}}
}

const (
	unknownData  = 1 << 20 // a znode's
	unknownNames = 16 << 10
	otherReply   = 256 // other replies are shorter; those that may not be say nothing about the next
)

// of returns what is known of the replies to an operation.
func (s *sizes) of(op proto.Opcode) *recent {
	switch op {
	case proto.OpGetData:
		return &s.data
	case proto.OpGetChildren, proto.OpGetChildren2:
		return &s.names
	}
	return &s.others
}

// trust reports whether a length counts alone. A session begins with few reads, whatever an earlier one had.
func (s *sizes) trust(l Length) bool { return l.Known && s.seen >= generation }

// expected returns how many bytes the replies to so many operations are expected to have together.
func (s *sizes) expected(op proto.Opcode, n int, together Length) int {
	if s.trust(together) {
		return together.Bytes
	}
	return max(together.Bytes, n*s.of(op).expected())
}

// perSeen is how many reads of data may be in flight for each that was answered: the first replies say little about the
// others.
const (
	perSeen = 2
	maxSeen = 1 << 20 // beyond it, counting is of no use
)

// learn records the lengths of replies to an operation: of the longest, and of all together; that of an error is 0.
func (s *sizes) learn(op proto.Opcode, longest, together, replies int) {
	if op == proto.OpGetData {
		s.seen = min(s.seen+replies, maxSeen)
		s.mean += (float64(together) - s.mean*float64(replies)) / float64(max(replies, min(s.seen, 4*generation)))
	}
	r := s.of(op)
	if r == &s.others {
		longest = min(longest, otherReply/2) // see recent.expected
	}
	if r.longest = max(r.longest, longest); longest > 0 {
		r.guess = 0
	}
	if r.replies += replies; r.replies < generation {
		return
	}
	if r.longest == 0 { // errors alone
		r.longest = max(r.before, r.guess/(1+perSeen*generation)) / 2
	}
	*r = recent{before: r.longest}
}

// A recent has the longest of the latest replies of one kind: the present generation's and the former one's. A
// generation of errors alone counts as half of what was known.
type recent struct {
	longest, replies int // of the present generation
	before           int // the longest of the former one
	guess            int // the length that is expected as long as none is known
}

const generation = 16

// expected returns the length that a reply is expected to have. An error says nothing about how long other replies
// are, but that they may be errors, too. Few replies hardly have the longest among them: if lengths are evenly
// spread, the longest of n falls short of it by one part in n.
func (r *recent) expected() int {
	switch {
	case r.guess > 0:
		return r.guess / (1 + perSeen*r.replies)
	case r.before == 0 && r.replies > 0:
		return r.longest + r.longest/r.replies
	}
	return max(r.longest, r.before)
}
