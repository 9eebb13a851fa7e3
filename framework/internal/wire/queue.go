package wire

import "time"

// A Class says what a request goes ahead of.
type Class uint8

// The classes, in the order in which they go out.
const (
	Ordinary Class = iota // in the order of their calls
	Apart                 // a read that no other request of its caller goes with: shares with Ordinary
	Release               // deletes a znode, which others may wait for
	Closing               // the close of the session
	Proof                 // keeps the session, or shows that the server lives
	classes
)

// bounded reports whether requests of the class wait for the window. The others are few and small.
func (c Class) bounded() bool { return c <= Apart }

// A queue has the requests that were not sent yet. They are in their callers' hands: each can be taken
// out at any time. Within a class they are in the order in which they came. Ordinary and Apart take turns
// by bytes, so that neither bulk nor many small requests keep the other from going out.
type queue struct {
	lanes [classes]lane
}

// A lane is a list of requests, linked by themselves.
type lane struct {
	first, last *Request
	sent        int64 // bytes of this lane that went out, on the scale that both shared lanes have
}

func (q *queue) add(rq *Request) {
	l := &q.lanes[rq.Class]
	if l.first == nil && rq.Class.bounded() { // it has no claim from the time that it was empty
		other := &q.lanes[Ordinary+Apart-rq.Class]
		if other.first != nil {
			l.sent = max(l.sent, other.sent)
		} else {
			other.sent = l.sent
		}
	}
	rq.before, rq.behind = l.last, nil
	if l.last == nil {
		l.first = rq
	} else {
		l.last.behind = rq
	}
	l.last = rq
}

func (q *queue) remove(rq *Request) {
	l := &q.lanes[rq.Class]
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
	for _, class := range [...]Class{Proof, Closing, Release} {
		if rq := q.lanes[class].first; rq != nil && (class != Release || w.count < maxInFlight) {
			q.remove(rq)
			return rq
		}
	}
	l := &q.lanes[Ordinary]
	if apart := &q.lanes[Apart]; l.first == nil || apart.first != nil && apart.sent < l.sent {
		l = apart
	}
	rq := l.choose(w, now)
	if rq != nil {
		q.remove(rq)
		l.sent += int64(rq.cost)
	}
	return rq
}

// maxPassed is how many requests without time are passed over in one search.
const maxPassed = 256

// choose returns the first request that can have its reply before its caller leaves, or nil if the window
// admits nothing now. If none can, and nothing is in flight, the guess may be wrong: it returns the last.
func (l *lane) choose(w *window, now time.Time) *Request {
	rq := l.first
	for n := 0; rq != nil && n < maxPassed; n++ {
		if rq.By.IsZero() || !w.answered(rq.cost, now).After(rq.By) {
			break
		}
		w.full = true
		rq = rq.behind
	}
	if rq == nil && w.count == 0 {
		rq = l.last
	}
	if rq == nil || !w.admits(rq.cost) {
		return nil
	}
	return rq
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
