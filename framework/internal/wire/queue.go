package wire

import "time"

// A Class says what a request goes ahead of.
type Class uint8

// The classes. Last goes when nothing else waits; the others are in the order in which they go out.
const (
	Ordinary Class = iota // in the order of their calls
	Apart                 // a read that no other request of its caller goes with: shares with Ordinary
	Release               // deletes a znode, which others may wait for
	Closing               // the close of the session, and pings: one that is over has to live until it is closed
	Proof                 // proves the session, or shows that the server lives
	Last                  // removes watches without callers, see maxLast
	classes
)

// shares reports whether requests of the class take turns with those of another.
func (c Class) shares() bool { return c <= Apart }

// A Call has several requests that read. They go one after another.
type Call struct {
	Reads int  // of all requests together
	begun bool // one was sent; guarded by Wire.mu
}

// waits reports whether the request is of a call of which none was sent yet.
func (rq *Request) waits() bool { return rq.Call != nil && !rq.Call.begun }

// A queue has the requests that were not sent yet. They are in their callers' hands: each can be taken
// out at any time. Within a class they are in the order in which they came, but those of a Call that has begun
// go ahead of those that have not, if their caller leaves. All but Proof and Closing, which are few and small,
// wait for the window: Release first. Ordinary and Apart take turns by bytes, so that neither bulk nor many
// small requests keep the other from going out.
type queue struct {
	lanes [classes]lane
	head  *Request  // of Ordinary and Apart, the one whose turn it was lately
	since time.Time // when it became that
	other bool      // the latest to go was not of Last
}

// maxLast is how many requests of Last wait until nothing else does. If there are more, one goes for each other one:
// else callers who leave watches, and always wait for the next, would have none of them removed. While as many are in
// flight, none goes for want of others: the next call would wait behind all of them.
const maxLast = 100

// A lane is a list of requests, linked by themselves.
type lane struct {
	first, last *Request
	count       int
	sent        int64 // bytes of this lane that went out, on the scale that both shared lanes have
}

func (q *queue) add(rq *Request) {
	l := &q.lanes[rq.Class]
	if l.first == nil && rq.Class.shares() { // it has no claim from the time that it was empty
		other := &q.lanes[Ordinary+Apart-rq.Class]
		if other.first != nil {
			l.sent = max(l.sent, other.sent)
		} else {
			other.sent = l.sent
		}
	}
	before := l.last
	if rq.Call != nil && rq.Call.begun && !rq.By.IsZero() { // calls end one after another; else all might end too late
		for n := 0; before != nil && before.waits() && n < maxPassed; n++ {
			before = before.before
		}
	}
	l.insert(rq, before)
}

// insert puts rq behind the request before; nil is for the first place.
func (l *lane) insert(rq, before *Request) {
	l.count++
	next, behind := &l.first, &l.last
	if before != nil {
		next = &before.behind
	}
	rq.before, rq.behind = before, *next
	if rq.behind != nil {
		behind = &rq.behind.before
	}
	*next, *behind = rq, rq
}

func (q *queue) remove(rq *Request) {
	l := &q.lanes[rq.Class]
	l.count--
	if rq.before == nil {
		l.first = rq.behind
	} else {
		rq.before.behind = rq.behind
	}
	if rq.behind == nil {
		l.last = rq.before
	} else {
		rq.behind.before = rq.before
	}
	rq.before, rq.behind = nil, nil
}

// next removes and returns the next request that may be sent now, or nil.
func (q *queue) next(w *window, now time.Time) *Request {
	for _, class := range [...]Class{Proof, Closing} {
		if rq := q.lanes[class].first; rq != nil {
			q.remove(rq)
			w.estimate(rq)
			return rq
		}
	}
	l, rq := q.turn(w, now)
	if rq != q.head {
		q.head, q.since = rq, now
	}
	if release := q.lanes[Release].first; release != nil && !q.overdue(w, now) {
		l, rq = &q.lanes[Release], release
		w.estimate(rq)
	}
	if last := &q.lanes[Last]; last.first != nil && (rq == nil && w.count < maxLast || q.other && last.count > maxLast) {
		l, rq = last, last.first
		w.estimate(rq)
	}
	if rq == nil || !w.admits(rq) {
		return nil // what is in flight drains until the window admits it
	}
	q.remove(rq)
	if rq.Call != nil {
		rq.Call.begun = true
	}
	q.other = rq.Class != Last
	l.sent += int64(rq.size + rq.reply)
	return rq
}

// overdue reports whether the head goes even ahead of releases: it has waited for the window's span, or needs
// more than the window's limit, so that it never goes unless everything before it is answered.
func (q *queue) overdue(w *window, now time.Time) bool {
	waited := now.Sub(q.since)
	return q.head != nil && (waited >= w.span || waited > 0 && !w.fits(q.head))
}

// maxPassed is how many requests without time are passed over in one search.
const maxPassed = 256

// turn returns the request of Ordinary and Apart whose turn it is, or nil, and its lane. If none of the lane whose
// turn it is can have its reply in time, the other lane is asked, and the first has no claim for that.
func (q *queue) turn(w *window, now time.Time) (*lane, *Request) {
	first, second := &q.lanes[Ordinary], &q.lanes[Apart]
	if first.first == nil || second.first != nil && second.sent < first.sent {
		first, second = second, first
	}
	if rq := first.choose(w, now); rq != nil {
		return first, rq
	}
	rq := second.choose(w, now)
	if rq != nil {
		first.sent = max(first.sent, second.sent)
	}
	return second, rq
}

// choose returns the first request that can have its reply before its caller leaves, or is a guess, or nil. One of a call
// that would end too late gives way to the others of the lane. If nothing is in flight, and no request has time, that
// is the first.
func (l *lane) choose(w *window, now time.Time) *Request {
	var late *Request
	for rq, n := l.first, 0; rq != nil && n < maxPassed; rq, n = rq.behind, n+1 {
		w.estimate(rq)
		switch hasTime := rq.By.IsZero() || w.guesses(rq) || !w.answered(rq, now).After(rq.By); {
		case !hasTime:
			w.fill()
		case !w.endsLate(rq, now):
			return rq
		case late == nil:
			late = rq
		}
	}
	if late == nil && w.count == 0 {
		return l.first
	}
	return late
}

// drain removes and returns all requests.
func (q *queue) drain() (all []*Request) {
	for class := range q.lanes {
		for rq := q.lanes[class].first; rq != nil; rq = q.lanes[class].first {
			q.remove(rq)
			all = append(all, rq)
		}
	}
	return all
}
