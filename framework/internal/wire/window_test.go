package wire

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

func weighing(cost int) *Request { return &Request{sending: sending{cost: cost}} }

// Whatever comes and goes, the window keeps its invariant, and admits something when nothing is in flight.
func TestWindow(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		w, now := newWindow(10*time.Second, new(sizes)), time.Now()
		var flying []int
		for range 2000 {
			now = now.Add(time.Duration(r.IntN(20)) * time.Millisecond)
			if cost := 1 + r.IntN(1<<r.IntN(23)); w.admits(weighing(cost)) {
				w.enter(weighing(cost), now)
				flying = append(flying, cost)
			} else if len(flying) == 0 {
				t.Fatal("nothing is in flight, and nothing is admitted")
			}
			if len(flying) > 0 && r.IntN(2) == 0 {
				w.leave(weighing(flying[0]), 1+r.IntN(1<<20), now)
				flying = flying[1:]
			}
			if w.count != len(flying) || w.count > maxInFlight || w.limit() > maxWindow || w.limit() < minWindow {
				t.Fatalf("%+v, with %d in flight", w, len(flying))
			}
		}
	}
}

// The limit follows what the connection carries: some of its span, within bounds.
func TestWindow_follows_the_rate(t *testing.T) {
	for rate, want := range map[int]int{10_000: minWindow, 1_000_000: 625_000, 1 << 30: maxWindow} {
		w, now := newWindow(10*time.Second, new(sizes)), time.Now()
		for range 200 {
			n := 0
			for ; n < 1 || w.admits(weighing(10_000)); n++ {
				w.enter(weighing(10_000), now)
			}
			for ; n > 0; n-- {
				now = now.Add(time.Duration(float64(10_000) / float64(rate) * float64(time.Second)))
				w.leave(weighing(10_000), 10_000, now)
			}
		}
		if got := w.limit(); got < want*9/10 || got > want*11/10 {
			t.Errorf("at %d bytes/s the limit is %d, want about %d", rate, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	s := unknownSizes()
	if s.expected(4) != unknownData {
		t.Errorf("%d bytes of unknown data", s.expected(4))
	}
	s.learn(4, 100)
	s.learn(4, 5000)
	s.learn(4, 100)
	if got := s.expected(4); got < 4000 || got > 5000 {
		t.Errorf("%d bytes, want nearly those of the longest", got)
	}
	for range 100 {
		s.learn(4, 100)
	}
	if got := s.expected(4); got > 110 {
		t.Errorf("%d bytes long after the longest", got)
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
		expected.learn(proto.OpGetData, 100)
	}
}
