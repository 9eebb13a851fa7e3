package page_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/schedule"
)

// visit opens the page in a tab.
func visit(t *testing.T, s *stand) *tab {
	t.Helper()
	tb := openTab(t)
	tb.do(chromedp.Navigate(s.base + "/#token=" + token))
	t.Cleanup(func() { tb.check(s.base) })
	return tb
}

// shown serves a page and opens it in a tab.
func shown(t *testing.T) (*stand, *tab) {
	t.Helper()
	s := serve(t, nil)
	return s, visit(t, s)
}

// The page shows the locks, moves when one is taken, and draws a deadlock.
func TestPage_shows_locks_and_deadlocks(t *testing.T) {
	s, tb := shown(t)
	tb.await("document.body.dataset.state === 'connecting' && document.querySelector('.skeleton')")
	s.show()
	tb.awaitText("#rows-note", "No locks below /locks")
	s.show(mutex("/locks/a", "alice"))
	tb.awaitText("#rows tbody", "alice")
	s.show(mutex("/locks/a", "alice", "bob"), mutex("/locks/b", "bob", "alice"))
	tb.awaitText("#findings", "deadlock")
	tb.await("document.querySelectorAll('#graph .node.dead').length === 2 && document.querySelectorAll('#graph .edge.dead').length === 2")
	tb.await("document.querySelectorAll('#rows tr.dead').length === 2")
	tb.await("document.querySelectorAll('#timeline .bar').length === 2")
	tb.do(chromedp.Click("#graph-toggle"))
	tb.awaitText("#graph-table", "host:17 alice")
	s.script <- inspect.View{State: inspect.Stale, Snapshot: inspect.Snapshot{Locks: []inspect.Lock{mutex("/locks/a", "alice")}}}
	tb.awaitText("#banner", "docent has lost ZooKeeper")
}

// The page counts the paths that could not be read, with the reasons and the list.
func TestPage_shows_what_could_not_be_read(t *testing.T) {
	s, tb := shown(t)
	view := current(time.Now(), mutex("/locks/a", "alice"))
	view.Unread = []inspect.Unread{{Path: "/locks/hr", Err: framework.ErrNoAuth}, {Path: "/locks/pay", Err: framework.ErrNoAuth}}
	s.script <- view
	tb.awaitText("#unread-text", "2 paths could not be read: no_auth")
	tb.do(chromedp.Click("#unread-text"))
	tb.awaitText("#unread-list", "/locks/pay: no_auth")
	s.show(mutex("/locks/a", "alice"))
	tb.await("document.querySelector('#unread').hidden")
}

// By keyboard alone: "/" finds, Enter opens a queue. The focus stays over updates.
func TestPage_by_keyboard(t *testing.T) {
	s, tb := shown(t)
	s.show(mutex("/locks/apple", "alice", "bob"), mutex("/locks/pear", "carol"))
	tb.awaitText("#rows tbody", "pear")
	tb.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("apple"))
	tb.await("document.querySelectorAll('#rows tbody tr').length === 1")
	tb.do(chromedp.Focus("#rows .path"), chromedp.KeyEvent("\r"))
	tb.awaitText("#contenders", "bob")
	s.show(mutex("/locks/apple", "alice", "bob", "dave"), mutex("/locks/pear", "carol"))
	tb.awaitText("#contenders", "dave")
	if got := get[string](tb, "document.activeElement.className"); got != "path" {
		t.Errorf("after an update the focus is on %q", got)
	}
}

// Names of znodes and owners are foreign. They are shown as text, with control characters spelled out.
func TestPage_shows_hostile_names_as_text(t *testing.T) {
	s, tb := shown(t)
	image := `<img src=x onerror="document.title='owned'">`
	s.show(mutex("/locks/"+image, image+"\u202e", image), mutex("/locks/z", "</script><script>document.title='owned'</script>\u0000", image))
	tb.awaitText("#rows tbody", `\u202e`)
	tb.await("document.querySelectorAll('#graph .node').length > 0 && document.querySelectorAll('#timeline .bar').length > 0")
	tb.do(chromedp.Click("#rows .path"))
	tb.awaitText("#contenders", "<img src=x")
	if n := get[int](tb, "document.querySelectorAll('img, body script').length"); n != 0 {
		t.Errorf("%d elements were made of names", n)
	}
	if title := get[string](tb, "document.title"); title != "docent" {
		t.Errorf("a name ran as a script: the title is %q", title)
	}
}

// Without the token the page is its frame alone.
func TestPage_without_a_token(t *testing.T) {
	s := serve(t, nil)
	s.show(mutex("/locks/a", "alice"))
	tb := openTab(t)
	tb.do(chromedp.Navigate(s.base + "/"))
	tb.awaitText("#banner", "open the URL that docent printed")
	if n := get[int](tb, "document.querySelectorAll('#rows .path').length"); n != 0 {
		t.Errorf("%d locks are shown", n)
	}
}

// Ten thousand locks: the page gets 200 rows, and asks for the others by name.
func TestPage_of_10000_locks(t *testing.T) {
	s, tb := shown(t)
	locks := manyLocks(10_000)
	s.show(locks...)
	tb.awaitText("#rows-note", "The first 200 of 10,000")
	tb.await("document.querySelectorAll('#rows tbody tr').length === 200")
	tb.await("document.querySelectorAll('#graph .node').length === 60")
	tb.awaitText("#graph-note", "more waiters")
	locks[0] = mutex("/locks/00000", "owner-new", "waiter-0")
	s.show(locks...)
	tb.awaitText("#rows tbody", "owner-new")
	tb.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("09999"))
	tb.awaitText("#rows tbody", "owner-9999")
	t.Logf("first paint after %.0f ms", get[float64](tb, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"))
}

// What may be a deadlock does not look like one.
func TestPage_shows_a_warning_in_another_form(t *testing.T) {
	s, tb := shown(t)
	bySession := func(l inspect.Lock, czxid int64) inspect.Lock { // Curator's: the holder's session is 8, or 9
		for i := range l.Contenders {
			c := &l.Contenders[i]
			c.By, c.Meta, c.Label = inspect.Curator, nil, "10.0.3.9"
			c.Czxid = czxid + int64(10*i)
		}
		return l
	}
	s.published(bySession(mutex("/locks/a", "i", "jj"), 1), bySession(mutex("/locks/b", "jj", "i"), 2), mutex("/locks/c", "carol"))
	tb.awaitText("#findings", "possible deadlock")
	tb.await("document.querySelectorAll('#graph .node.possible').length === 2 && document.querySelectorAll('#graph .edge.possible').length === 2")
	tb.await("document.querySelectorAll('#rows tr.possible').length === 2")
	if n := get[int](tb, "document.querySelectorAll('.dead:not([hidden], .key)').length - document.querySelectorAll('marker.dead').length"); n != 0 {
		t.Errorf("%d elements look like a deadlock", n)
	}
	if !get[bool](tb, "document.querySelector('#figure-dead').hidden") {
		t.Error("a deadlock is counted")
	}
}

// A schedule's row has who is at work and the last run, and its queue the last runs; data that are not a
// schedule's are named.
func TestPage_shows_schedules(t *testing.T) {
	s, tb := shown(t)
	at := time.UnixMilli(1_700_000_000_000)
	nightly := mutex("/locks/nightly", "alice")
	nightly.Kind = inspect.Schedule
	nightly.Runs = []schedule.Run{
		{Slot: at, State: schedule.Done, From: at, To: at.Add(time.Minute), Host: "batch-1", PID: 1},
		{Slot: at.Add(time.Hour), State: schedule.Running, From: at.Add(time.Hour), Host: "<b>batch-2", PID: 2},
	}
	free := inspect.Lock{Path: "/locks/hourly", Kind: inspect.Schedule, Permits: 1, Complete: true, Runs: nightly.Runs[:1]}
	theirs := inspect.Lock{Path: "/locks/theirs", Kind: inspect.Schedule, Unknown: true, Complete: true}
	s.show(free, nightly, theirs)
	tb.awaitText("#rows tbody", "running: ")
	tb.awaitText("#rows tbody", "nobody")
	tb.awaitText("#rows tbody", "unknown: the data are not a schedule’s")
	tb.do(chromedp.Click(`#rows .path[title="/locks/nightly"]`))
	tb.awaitText("#contenders", "batch-1:1")
	tb.awaitText("#contenders", "<b>batch-2:2")
}
