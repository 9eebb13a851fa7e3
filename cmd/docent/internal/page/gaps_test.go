package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
)

// A laneSeen is a lane as a tab gets it.
type laneSeen struct {
	Path   string
	More   int
	Holds  []struct{ From, To int64 }
	Left   *struct{ From, To int64 }
	Unseen []struct{ From, To int64 }
}

// busy shows n holds of a lock, one after another, 100 ms each with no pause between two. It ends when begun is that
// long ago.
func (s *stand) busy(n int, begun time.Time) (last inspect.Lock) {
	for i := range n {
		at := begun.Add(time.Duration(i) * 100 * time.Millisecond)
		l := mutex("/locks/busy", fmt.Sprintf("holder-%d", i))
		l.Contenders[0].Created, l.Contenders[0].Czxid = at, int64(1000+i)
		s.script <- current(at, l)
		last = l
	}
	return last
}

// bare returns the milliseconds of the lock's life, since begun, for which the lane has neither a bar nor a mark.
func (l *laneSeen) bare(from, to int64) (bare int64) {
	marked := func(ms int64) bool {
		in := func(from, to int64) bool { return from <= ms && (to == 0 || ms <= to) }
		for _, h := range l.Holds {
			if in(h.From, h.To) {
				return true
			}
		}
		for _, u := range l.Unseen {
			if in(u.From, u.To) {
				return true
			}
		}
		return l.Left != nil && in(l.Left.From, l.Left.To)
	}
	for ms := from; ms < to; ms++ {
		if !marked(ms) {
			bare++
		}
	}
	return bare
}

// A lock that was held all the time looks free at no time: what has no bar is marked, be it one hold of many, a time
// before docent began to look, or one in which it had lost ZooKeeper.
func TestServer_marks_what_has_no_bar(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	begun := time.Now().Add(-time.Minute)
	last := s.busy(300, begun)
	lost, again := begun.Add(30*time.Second), begun.Add(40*time.Second)
	stale := current(lost, last)
	stale.State, stale.Cause = inspect.Stale, framework.ErrNotConnected
	s.script <- stale
	s.script <- current(again)
	next := mutex("/locks/busy", "next")
	next.Contenders[0].Created, next.Contenders[0].Czxid = again, 5000
	for range 2 {
		s.script <- current(again.Add(time.Second), next)
	}
	lanes := s.snapshot(t, "").Holds
	if len(lanes) != 1 || lanes[0].More < 100 || lanes[0].Left == nil {
		t.Fatalf("%d lanes, not one with holds that are left out: %+v", len(lanes), lanes)
	}
	l := lanes[0]
	if bare := l.bare(begun.Add(-5*time.Minute).UnixMilli(), again.Add(time.Second).UnixMilli()); bare > 0 {
		t.Errorf("for %d ms the lock looks free: left out %+v, not seen %+v", bare, *l.Left, l.Unseen)
	}
	if len(l.Unseen) != 2 || l.Unseen[1].From != lost.UnixMilli() || l.Unseen[1].To != again.UnixMilli() {
		t.Errorf("not seen: %+v, want the time before %v, and %v to %v", l.Unseen, begun, lost, again)
	}
}

// The page draws such times, and its table has them.
func TestPage_hatches_what_has_no_bar(t *testing.T) {
	s, tb := shown(t)
	begun := time.Now().Add(-30 * time.Second)
	last := s.busy(300, begun)
	s.show(last)
	tb.await("document.querySelectorAll('#timeline .gap.left').length === 1 && document.querySelectorAll('#timeline .gap.unseen').length === 1")
	covers := get[bool](tb, `(() => {
	  const box = (e) => e.getBoundingClientRect(), left = box(document.querySelector('.gap.left rect'));
	  const bars = [...document.querySelectorAll('#timeline .bar')].map(box), before = box(document.querySelector('.gap.unseen rect'));
	  return before.right >= left.left - 2 && left.right >= Math.min(...bars.map((b) => b.left)) - 2 && left.width > 5;
	})()`)
	if !covers {
		t.Error("between the hatching and the first bar the lock looks free")
	}
	tb.awaitText("#holds-note", "older holds are not drawn")
	tb.do(chromedp.Click("#holds-toggle"))
	tb.awaitText("#holds-table", "holds, not drawn")
	tb.awaitText("#holds-table", "not seen")
}

// A holder whose znode can't be read holds nevertheless, and no client knows since when: not since 1970.
func TestServer_shows_a_holder_that_could_not_be_read(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	l := mutex("/locks/a", "alice", "bob")
	l.Kind = inspect.Semaphore
	l.Contenders[1] = inspect.Contender{Znode: "/locks/a/bob", State: inspect.Holds, Side: inspect.Permit}
	hidden := inspect.Lock{Path: "/locks/b", Kind: inspect.Mutex, Contenders: []inspect.Contender{{Znode: "/locks/b/carol", State: inspect.Holds}}}
	begun := time.Now().UnixMilli()
	s.published(l, hidden)
	if metrics := text(t, s.ask(t, "GET", "/metrics", "")); !strings.Contains(metrics, "docent_locks_held 2\n") || strings.Contains(metrics, "docent_lock_oldest_hold_seconds 0\n") {
		t.Errorf("not two locks that are held:\n%s", metrics)
	}
	for _, lane := range s.snapshot(t, "").Holds {
		for _, h := range lane.Holds {
			if alice := l.Contenders[0].Created.UnixMilli(); h.From != alice && h.From < begun-1 {
				t.Errorf("%s: a hold since %v", lane.Path, time.UnixMilli(h.From).UTC())
			}
		}
	}
}
