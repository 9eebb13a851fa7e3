package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// What one lane sent while the other was idle, or had no request with time, gives the other no claim.
func TestALaneThatSendsNothingGainsNoClaim(t *testing.T) {
	for _, hopeless := range []bool{false, true} {
		for _, lane := range []Class{Ordinary, Apart} {
			var q queue
			w, now := newWindow(10*time.Second, new(sizes)), time.Now()
			add := func(class Class) { q.add(&Request{Class: class, Expect: Length{Bytes: 1000}}) }
			if hopeless {
				w.enter(weighing(0, minWindow/2), now) // by the first rate, a quarter of a second
				q.add(&Request{Class: lane, Expect: Length{Bytes: 1000}, By: now.Add(100 * time.Millisecond)})
			}
			other := Ordinary + Apart - lane
			for range 10_000 { // each goes out at once
				add(other)
				q.next(&w, now)
			}
			add(lane)
			add(lane)
			add(other)
			n := 0
			for ; q.next(&w, now).Class == lane; n++ {
				add(lane)
			}
			if n > 2 {
				t.Errorf("hopeless %v: %d requests of class %d went ahead of one of the other lane", hopeless, n, lane)
			}
		}
	}
}

// A call that has begun goes ahead of those that have not, if its caller leaves, and of nothing else.
func TestACallThatHasBegunGoesAhead(t *testing.T) {
	now := time.Now()
	by := now.Add(time.Hour)
	const ( // kinds of calls
		one = iota
		waits
		begun
	)
	callOf := func(kind int) *Call {
		if kind == one {
			return nil
		}
		return &Call{begun: kind == begun}
	}
	for name, c := range map[string]struct {
		queued []int
		kind   int
		by     time.Time
		ahead  int // how many go ahead of rq
	}{
		"calls that have not begun": {[]int{waits, waits}, begun, by, 0},
		"another that has begun":    {[]int{begun, waits}, begun, by, 1},
		"a call of one request":     {[]int{waits, one, waits}, begun, by, 2},
		"its caller stays":          {[]int{waits, waits}, begun, time.Time{}, 2},
		"it has not begun":          {[]int{waits, waits}, waits, by, 2},
		"more than are passed":      {slices.Repeat([]int{waits}, maxPassed+10), begun, by, 10},
	} {
		t.Run(name, func(t *testing.T) {
			var q queue
			w := newWindow(10*time.Second, new(sizes))
			for _, kind := range c.queued {
				q.add(&Request{Class: Apart, Call: callOf(kind)})
			}
			rq := &Request{Class: Apart, Call: callOf(c.kind), By: c.by}
			q.add(rq)
			n := 0
			for q.next(&w, now) != rq {
				n++
			}
			rest := 0
			for q.next(&w, now) != nil {
				rest++
			}
			if n != c.ahead || rest != len(c.queued)-n {
				t.Errorf("%d went ahead and %d behind, want %d of %d ahead", n, rest, c.ahead, len(c.queued))
			}
		})
	}
}

// Removals wait until nothing else does. Beyond maxLast, they take turns with all others, releases too.
func TestManyRemovalsTakeTurns(t *testing.T) {
	for _, class := range []Class{Ordinary, Apart, Release} {
		for few, want := range map[bool]int{true: 0, false: 100} {
			var q queue
			w, now := newWindow(10*time.Second, new(sizes)), time.Now()
			n := maxLast
			if !few {
				n += 100
			}
			for range n {
				q.add(&Request{Class: Last, Expect: Length{Bytes: 10}})
			}
			removals := 0
			for others := 0; others < 200; {
				q.add(&Request{Class: class, Expect: Length{Bytes: 10}})
				if q.next(&w, now).Class == Last {
					removals++
				} else {
					others++
				}
			}
			if removals != want {
				t.Errorf("%d of %d removals went among 200 of class %d, want %d", removals, n, class, want)
			}
		}
	}
}

// pump sends what the window admits.
func pump(q *queue, w *window, now time.Time) (sent []*Request) {
	for rq := q.next(w, now); rq != nil; rq = q.next(w, now) {
		w.enter(rq, now)
		sent = append(sent, rq)
	}
	return sent
}

// goesWithin reports whether rq goes out within the span, while so many callers each send a request of like's
// kind as soon as they have the reply, which takes rtt and is small.
func goesWithin(span, rtt time.Duration, rq *Request, callers int, like Request) bool {
	type flying struct {
		rq *Request
		at time.Time
	}
	var q queue
	var inFlight []flying
	w, now := newWindow(10*time.Second, new(sizes)), time.Now()
	end := now.Add(span)
	if !rq.By.IsZero() {
		rq.By = end
	}
	went := false
	send := func() {
		for _, sent := range pump(&q, &w, now) {
			went = went || sent == rq
			inFlight = append(inFlight, flying{sent, now.Add(rtt)})
		}
	}
	call := func() {
		next := like
		if !rq.By.IsZero() {
			next.By = now.Add(10 * time.Second)
		}
		q.add(&next)
		send()
	}
	for range callers {
		call()
		now = now.Add(rtt / time.Duration(2*callers))
	}
	q.add(rq)
	for send(); !went && now.Before(end) && len(inFlight) > 0; {
		first := inFlight[0]
		inFlight = inFlight[1:]
		now = later(now, first.at)
		w.leave(first.rq, 120, now)
		send()
		now = now.Add(20 * time.Microsecond)
		call()
	}
	return went
}

// However many callers delete, other requests go, be they larger than the window's limit or not.
func TestReleasesStarveNothing(t *testing.T) {
	for _, callers := range []int{2, 100, 1000} {
		for _, class := range []Class{Ordinary, Apart} {
			for _, cost := range []int{200, minWindow - 1000, unknownData} {
				rq := &Request{Class: class, Expect: Length{Bytes: cost}}
				if !goesWithin(2*time.Second, time.Millisecond, rq, callers, Request{Class: Release, Expect: Length{Bytes: 330}}) {
					t.Errorf("a request of class %d and %d bytes did not go, with %d callers that delete", class, cost, callers)
				}
			}
		}
	}
}

// Releases are in flight within the window's limit, as others are.
func TestReleasesAreBounded(t *testing.T) {
	var q queue
	w, now := newWindow(10*time.Second, new(sizes)), time.Now()
	for range 100 {
		q.add(&Request{Class: Release, Expect: Length{Bytes: 30 << 10}})
	}
	if pump(&q, &w, now); w.down.bytes > w.down.limit(w.span) {
		t.Errorf("%d bytes in flight, and the limit is %d", w.down.bytes, w.down.limit(w.span))
	}
}

// A request with a deadline goes on a link that has next to nothing in flight, whatever its size.
func TestADeadlineIsNoReasonToWaitOnAnIdleLink(t *testing.T) {
	for _, tc := range []struct {
		cost    int
		rtt, by time.Duration
	}{
		{unknownData, 20 * time.Millisecond, 10 * time.Second},
		{unknownData, 5 * time.Millisecond, 5 * time.Second},
		{unknownData, time.Millisecond, 2 * time.Second},
		{200 << 10, 20 * time.Millisecond, 3 * time.Second},
		{64 << 10, 20 * time.Millisecond, time.Second},
		{320, 20 * time.Millisecond, 50 * time.Millisecond},
	} {
		for _, callers := range []int{2, 5} {
			rq := &Request{Class: Apart, By: time.Now(), Expect: Length{Bytes: tc.cost}}
			if !goesWithin(tc.by, tc.rtt, rq, callers, Request{Class: Apart, Expect: Length{Bytes: 320}}) {
				t.Errorf("%d bytes did not go within %v, with a round trip of %v and %d callers", tc.cost, tc.by, tc.rtt, callers)
			}
		}
	}
}

// How long a write takes is known once one of its size was sent. One whose caller leaves before that gives way.
func TestAWriteWithoutTimeGivesWay(t *testing.T) {
	var q queue
	w, now := newWindow(10*time.Second, new(sizes)), time.Now()
	const size = 1 << 20
	write := func(left time.Duration) *Request {
		return &Request{Expect: Length{Bytes: 100}, By: now.Add(left), sending: sending{size: size}}
	}
	former := write(time.Minute)
	q.add(former)
	if q.next(&w, now) != former {
		t.Fatal("the first write doesn't go")
	}
	w.enter(former, now)
	now = now.Add(4 * time.Second)
	w.leave(former, 100, now)
	hopeless, later := write(time.Second), write(time.Minute)
	q.add(hopeless)
	q.add(later)
	if q.next(&w, now) != later {
		t.Error("a write of 4 s goes whose caller leaves in 1 s, and not the one behind it")
	}
	w.enter(later, now)
	w.leave(later, 100, now.Add(4*time.Second))
	if q.next(&w, now) != hopeless {
		t.Error("nothing is in flight, and no write goes: then a lower rate would stay as it is")
	}
}

// However many requests have no time left, none goes because of that.
func TestNoneOfManyHopelessRequestsGoes(t *testing.T) {
	var q queue
	w, now := newWindow(10*time.Second, new(sizes)), time.Now()
	w.enter(weighing(0, minWindow/2), now) // by the first rate, a quarter of a second
	for range 2 * maxPassed {
		q.add(&Request{Class: Apart, Expect: Length{Bytes: 200}, By: now.Add(100 * time.Millisecond)})
	}
	if sent := pump(&q, &w, now); len(sent) > 0 {
		t.Errorf("%d requests went out that can't have their replies in time", len(sent))
	}
}

// If all requests of one lane have no time left, those of the other go, even if it was the one lane's turn.
func TestHopelessRequestsHoldUpNoOtherLane(t *testing.T) {
	for _, hopeless := range []Class{Ordinary, Apart} {
		var q queue
		expected := unknownSizes()
		w, now := newWindow(10*time.Second, &expected), time.Now()
		w.enter(weighing(0, minWindow/2), now) // by the first rate, a quarter of a second
		q.add(&Request{Class: hopeless, Expect: Length{Bytes: 200}, By: now.Add(100 * time.Millisecond)})
		other := &Request{Class: Ordinary + Apart - hopeless, Expect: Length{Bytes: 200}}
		q.add(other)
		q.lanes[other.Class].sent = q.lanes[hopeless].sent + 1 // it is the hopeless request's turn
		if sent := pump(&q, &w, now); len(sent) != 1 || sent[0] != other {
			t.Errorf("%d requests went, want the one of class %d", len(sent), other.Class)
		}
	}
}

// A request costs what is known when it goes, not what was known when it came.
func TestTheCostOfARequestIsOfNow(t *testing.T) {
	var q queue
	expected := unknownSizes()
	w, now := newWindow(10*time.Second, &expected), time.Now()
	for range 100 {
		q.add(&Request{Class: Apart, Opcode: proto.OpGetData})
	}
	first := pump(&q, &w, now)
	if len(first) != 1 {
		t.Errorf("%d reads of unknown size at once", len(first))
	}
	expected.learn(proto.OpGetData, 100, 100*60, 60)
	w.leave(first[0], 100, now)
	if sent := pump(&q, &w, now); len(sent) != 99 {
		t.Errorf("%d reads at once of 100 bytes each, want 99", len(sent))
	}
}

// reads queues a call of so many requests, each of four reads, whose caller leaves then.
func reads(q *queue, requests int, by time.Time) []*Request {
	const each = 4
	call, all := &Call{Reads: each * requests}, make([]*Request, requests)
	for i := range all {
		all[i] = &Request{Class: Apart, Opcode: proto.OpMultiRead, Reads: each, Read: proto.OpGetData, Call: call, By: by}
		q.add(all[i])
	}
	return all
}

// A call of several reads that would end after its caller has left gives way to one that has time, with all its requests.
// How long many znodes are together is no guess. Once it has begun, it goes on; if no other waits, it begins.
func TestACallThatWouldEndLateGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		known int           // replies to reads
		left  time.Duration // until the caller of the first call leaves; zero for never
		goes  bool
	}{
		"there is time":       {100, 2500 * time.Millisecond, true},
		"for some of it":      {100, 1500 * time.Millisecond, false},
		"its caller stays":    {100, 0, true},
		"lengths are a guess": {generation - 1, 1500 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			var q queue
			expected := unknownSizes()
			w, now := newWindow(10*time.Second, &expected), time.Now()
			w.down.rate = 100_000
			expected.learn(proto.OpGetData, 2*12_500, c.known*12_500, c.known) // the longest has twice the mean
			var by time.Time
			if c.left > 0 {
				by = now.Add(c.left)
			}
			call := reads(&q, 4, by) // of two seconds
			reads(&q, 4, by)
			other := reads(&q, 4, now.Add(time.Minute))
			want, second := other[0], other[1]
			if c.goes {
				want, second = call[0], call[1]
			}
			if got := q.next(&w, now); got != want {
				t.Fatalf("request %d of it goes, want its first: %t", slices.Index(call, got), c.goes)
			}
			if got := q.next(&w, now); got != second {
				t.Error("it has begun, and doesn't go on")
			}
			for _, rq := range other[2:] {
				q.remove(rq)
			}
			w.enter(weighing(0, 100), now)
			if !c.goes && q.lanes[Apart].choose(&w, now) != call[0] {
				t.Error("no other waits, and it doesn't begin")
			}
		})
	}
}
