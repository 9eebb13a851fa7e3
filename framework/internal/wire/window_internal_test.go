package wire

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

func weighing(up, down int) *Request { return &Request{sending: sending{size: up, reply: down}} }

// Whatever comes and goes, the window keeps its invariant, and admits something when nothing is in flight.
func TestWindow(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		w, now := newWindow(10*time.Second, new(sizes)), time.Now()
		var flying []*Request
		for range 2000 {
			now = now.Add(time.Duration(r.IntN(20)) * time.Millisecond)
			if rq := weighing(1+r.IntN(1<<r.IntN(23)), 1+r.IntN(1<<r.IntN(23))); w.admits(rq) {
				w.enter(rq, now)
				flying = append(flying, rq)
			} else if len(flying) == 0 {
				t.Fatal("nothing is in flight, and nothing is admitted")
			}
			if len(flying) > 0 && r.IntN(2) == 0 {
				w.leave(flying[0], 1+r.IntN(1<<20), now)
				flying = flying[1:]
			}
			if w.count != len(flying) || w.count > maxInFlight {
				t.Fatalf("%+v, with %d in flight", w, len(flying))
			}
			for _, d := range []direction{w.up, w.down} {
				if limit := d.limit(w.span); limit > maxWindow || limit < minWindow {
					t.Fatalf("%+v: a limit of %d bytes", d, limit)
				}
			}
		}
	}
}

// The limit of each direction follows what it carries: some of the window's span, within bounds. The other, be it
// fast or slow, says nothing about it.
func TestWindow_follows_the_rate(t *testing.T) {
	wants := map[int]int{10_000: minWindow, 1_000_000: 625_000, 1 << 30: maxWindow}
	for up, wantUp := range wants {
		for down, wantDown := range wants {
			w, now := newWindow(10*time.Second, new(sizes)), time.Now()
			for range 400 {
				now = exchange(&w, weighing(10_000, 1), up, down, now)
				now = exchange(&w, weighing(1, 10_000), up, down, now)
			}
			if got := w.up.limit(w.span); got < wantUp*9/10 || got > wantUp*11/10 {
				t.Errorf("at %d bytes/s up and %d down the limit up is %d, want about %d", up, down, got, wantUp)
			}
			if got := w.down.limit(w.span); got < wantDown*9/10 || got > wantDown*11/10 {
				t.Errorf("at %d bytes/s up and %d down the limit down is %d, want about %d", up, down, got, wantDown)
			}
		}
	}
}

// exchange sends as many requests like rq as the window admits, and has the replies come as fast as the rates
// allow. It returns when the last has come.
func exchange(w *window, rq *Request, up, down int, now time.Time) time.Time {
	n := 0
	for ; n < 1 || w.admits(rq); n++ {
		w.enter(rq, now)
	}
	for ; n > 0; n-- {
		took := max(float64(rq.size)/float64(up), float64(rq.reply)/float64(down))
		now = now.Add(time.Duration(took * float64(time.Second)))
		w.leave(rq, rq.reply, now)
	}
	return now
}

func TestSizes(t *testing.T) {
	s := unknownSizes()
	want := func(when string, least, most int) {
		t.Helper()
		if got := s.data.expected(); got < least || got > most {
			t.Errorf("%s: %d bytes are expected, want from %d to %d", when, got, least, most)
		}
	}
	want("at first", unknownData, unknownData)
	s.learn(proto.OpGetData, 0, 0, 1)
	want("after an error", unknownData/4, unknownData/2)
	s.learn(proto.OpGetData, 0, 0, generation)
	want("after many errors", 10_000, 30_000)
	s.learn(proto.OpGetData, 0, 0, generation)
	want("after twice as many", 5_000, 15_000)
	for range 20 {
		s.learn(proto.OpGetData, 0, 0, generation)
	}
	want("after errors alone for long", 0, 0)
	s = unknownSizes()
	s.learn(proto.OpGetData, 1000<<10, 1000<<10*2*generation, 2*generation)
	s.learn(proto.OpGetData, 0, 0, 64)
	want("after one read of many that are absent", 500<<10, 1000<<10)
	s = unknownSizes()
	s.learn(proto.OpGetData, 100, 100, 1)
	want("after a short one", 200, 200)
	s.learn(proto.OpGetData, 5000, 5000, 1)
	s.learn(proto.OpGetData, 100, 100*(generation-1), generation-1)
	want("soon after a long one", 5000, 5500)
	s.learn(proto.OpGetData, 0, 0, 1)
	want("after another error", 5000, 5500)
	s.learn(proto.OpGetData, 100, 100*2*generation, 2*generation)
	want("long after the long one", 100, 100)
	s.learn(proto.OpMulti, 1<<20, 1<<20, 1)
	if got := s.of(proto.OpSetData).expected(); got > otherReply {
		t.Errorf("%d bytes are expected of a write behind a long reply to a transaction", got)
	}
}

// That the first znodes were small says little about the others.
func TestFewReadsGoUntilSomeWereAnswered(t *testing.T) {
	var q queue
	expected := unknownSizes()
	w, now := newWindow(10*time.Second, &expected), time.Now()
	for range 1000 {
		q.add(&Request{Opcode: proto.OpGetData})
	}
	for seen, want := range []int{1, perSeen * 2, perSeen * 3} {
		sent := pump(&q, &w, now)
		if w.count != want {
			t.Errorf("%d reads in flight after %d replies, want %d", w.count, seen, want)
		}
		w.leave(sent[0], 100, now)
		expected.learn(proto.OpGetData, 100, 100, 1)
	}
}

// A read of many znodes is weighed when it goes, by what is known of data then.
func TestAReadOfManyIsWeighedWhenItGoes(t *testing.T) {
	known := unknownSizes()
	w := newWindow(10*time.Second, &known)
	rq := &Request{Opcode: proto.OpMultiRead, Read: proto.OpGetData, Reads: 10}
	w.estimate(rq)
	known.learn(proto.OpGetData, 100_000, 100_000, 1)
	w.estimate(rq)
	if least := 10 * 100_000; rq.reply < least || rq.reply > 3*least {
		t.Errorf("%d bytes, want %d to %d", rq.reply, least, 3*least)
	}
}

// Proofs enter without the window's word. They are counted, and no more is admitted for them.
func TestProofsOpenNoWindow(t *testing.T) {
	w, now := newWindow(10*time.Second, new(sizes)), time.Now()
	w.down.rate = 1 << 30
	for range maxInFlight {
		w.enter(weighing(10, 10), now)
	}
	for range 3 { // beyond the bound, not only at it
		w.enter(weighing(10, 10), now)
		if w.admits(weighing(10, 10)) {
			t.Fatalf("another is admitted with %d in flight", w.count)
		}
	}
}

// Short replies over a long way: callers with deadlines of many round trips are not sent one after another.
func TestShortRepliesOverALongWay(t *testing.T) {
	const callers, way, patience = 300, 50 * time.Millisecond, time.Second
	var q queue
	expected := unknownSizes()
	w, now := newWindow(10*time.Second, &expected), time.Now()
	var flying []*Request
	for round := range 60 {
		for rq := q.lanes[Apart].first; rq != nil; rq = q.lanes[Apart].first {
			q.remove(rq) // its caller has left
		}
		for range callers {
			q.add(&Request{Class: Apart, By: now.Add(patience), sending: sending{size: 30}})
		}
		answered := flying
		flying = nil
		for i := 0; i == 0 || i < len(answered); i++ { // each reply makes room
			if i < len(answered) {
				w.leave(answered[i], proto.LengthSize+proto.ReplyHeadSize, now)
				expected.learn(answered[i].Opcode, 0, 0, 1)
			}
			for rq := q.next(&w, now); rq != nil; rq = q.next(&w, now) {
				w.enter(rq, now)
				flying = append(flying, rq)
			}
		}
		if round > 10 && len(flying) < callers/3 {
			t.Fatalf("round %d: %d of %d requests are under way", round, len(flying), callers)
		}
		now = now.Add(way)
	}
}

// However fast the link, the replies to the reads of one request are expected to have half a mebibyte at most, unless it
// is one read; on a slow link, what that carries soon. Those of a call have twice as much, or about what the link carries
// very soon.
func TestReadsTogetherAreBoundedByBytes(t *testing.T) {
	for _, tc := range []struct{ size, rate, known, most, ahead int }{
		{1000 << 10, 1 << 30, 0, 1, 4},
		{100 << 10, 1 << 30, 0, 5, 8},
		{1 << 10, 1 << 30, 0, 512, 8},
		{100 << 10, 10_000_000, 0, 5, 2},
		{64<<10 + 80, 10_000_000, 0, 7, 2},
		{1000 << 10, 20_000_000, 0, 1, 2},
		{1000 << 10, 10_000_000, 0, 1, 1},
		{100 << 10, 200_000, 0, 1, 10},
		{1 << 10, 200_000, 0, 122, 8},
		{1000 << 10, 1 << 30, 1 << 10, 512, 8}, // known, whatever other replies had
		{1 << 10, 1 << 30, 1000 << 10, 1, 4},
		{0, 1 << 30, 0, 1, 2}, // of unknown size, so the next ones may have more reads
	} {
		w := New(Config{})
		w.conn = &Conn{window: newWindow(10*time.Second, &w.sizes)}
		w.conn.window.down.rate = float64(tc.rate)
		if tc.size > 0 {
			w.sizes.learn(proto.OpGetData, tc.size, tc.size*1000, 1000)
		}
		known := Length{Bytes: tc.known, Known: tc.known > 0}
		got := w.Together(proto.OpGetData, known)
		if ahead := w.Ahead(proto.OpGetData, got, known); got != tc.most || ahead != tc.ahead {
			t.Errorf("%d reads of %d bytes (known: %d) go together at %d bytes/s, want %d; %d requests, want %d", got, tc.size, tc.known, tc.rate, tc.most, ahead, tc.ahead)
		}
	}
}

// Callers who ask again as soon as they are answered, over a long way. That a reply may be long, as one was lately, costs
// some of the rate, but the short ones say nothing about what the link carries.
func TestShortRepliesAmongLongOnes(t *testing.T) {
	const callers, way, second = 64, 50 * time.Millisecond, time.Second
	for name, tc := range map[string]struct {
		every          int // of so many replies, one is long; 0 for the first alone
		patience, span time.Duration
		together       int // so many are answered in each round trip, or more
	}{
		"one before":      {0, second, 2 * second, callers / 2},
		"every twentieth": {20, 2 * second, 5 * second, maxWindow / (1000 << 10)}, // each may be long
	} {
		t.Run(name, func(t *testing.T) {
			answered, lost := closedLoop(callers, way, tc.patience, tc.span, tc.every)
			if least := tc.together * int(tc.span/way); answered < least || lost > 0 {
				t.Errorf("%d answered and %d lost in %v, want at least %d and none", answered, lost, tc.span, least)
			}
		})
	}
}

// closedLoop returns how many of the callers' reads of data were answered before their deadlines, and how many were not, by
// a link of 20 MB/s. One long reply precedes them, and of so many replies one is long.
func closedLoop(callers int, way, patience, span time.Duration, every int) (answered, lost int) {
	const long, short, rate = 1000 << 10, 120, 20e6
	type flight struct {
		rq     *Request
		at     time.Time
		length int
	}
	var q queue
	expected := unknownSizes()
	now := time.Now()
	w := newWindow(10*time.Second, &expected)
	var flying []flight
	free, end, n := now, now.Add(span), 0
	send := func() {
		for _, rq := range pump(&q, &w, now) {
			length := short
			if n++; n == 1 || every > 0 && n%every == 0 {
				length = long
			}
			free = later(free, now.Add(way)).Add(time.Duration(float64(length) / rate * float64(time.Second)))
			flying = append(flying, flight{rq, free, length})
		}
	}
	ask := func() {
		q.add(&Request{Class: Apart, Opcode: proto.OpGetData, By: now.Add(patience), sending: sending{size: 40}})
	}
	ask()
	send()
	for end = later(end, flying[0].at.Add(span)); len(flying) > 0 && flying[0].at.Before(end); send() {
		first := flying[0]
		flying = flying[1:]
		for rq := q.lanes[Apart].first; rq != nil && rq.By.Before(first.at); rq = q.lanes[Apart].first {
			now = rq.By
			q.remove(rq) // its caller has left, and asks again
			lost++
			ask()
		}
		now = first.at
		w.leave(first.rq, proto.LengthSize+proto.ReplyHeadSize+first.length, now)
		expected.learn(proto.OpGetData, first.length, first.length, 1)
		switch {
		case n == 1:
			for range callers - 1 {
				ask()
			}
		case first.rq.By.Before(now):
			lost++
		default:
			answered++
		}
		ask()
	}
	return answered, lost
}
