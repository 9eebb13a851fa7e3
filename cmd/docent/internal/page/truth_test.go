package page_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

// A link is a listener whose connections can swallow all bytes: both ends stay open, and hear nothing.
type link struct {
	net.Listener

	mu    sync.Mutex // guards following
	open  chan struct{}
	conns []net.Conn
}

// linked serves a page on a link.
func linked(t *testing.T) (*link, *stand) {
	t.Helper()
	l := &link{Listener: must.Get(net.Listen("tcp", "127.0.0.1:0"))(t), open: make(chan struct{})}
	close(l.open)
	s := serveOn(t, l, nil)
	t.Cleanup(l.pass) // before the server ends
	return l, s
}

func (l *link) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return linkedConn{c, l}, nil
}

// A linkedConn is a connection of a link.
type linkedConn struct {
	net.Conn
	link *link
}

func (c linkedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	<-c.link.passing()
	return n, err
}

func (c linkedConn) Write(p []byte) (int, error) {
	<-c.link.passing()
	return c.Conn.Write(p)
}

// passing is closed while bytes pass.
func (l *link) passing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// swallow lets nothing pass until pass.
func (l *link) swallow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *link) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// cut ends all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// truthScript lets a test set the browser's clock on, as a machine that has slept finds it, and hide the tab. It
// notes what the page shows, ten times a second, with the true time.
const truthScript = `
const trueNow = Date.now.bind(Date);
window.slept = 0;
Date.now = () => trueNow() + window.slept;
window.tabHidden = false;
Object.defineProperty(document, 'hidden', { get: () => window.tabHidden, configurable: true });
window.hide = (hidden) => { window.tabHidden = hidden; document.dispatchEvent(new Event('visibilitychange')); };
window.seen = [];
setInterval(() => {
  const row = document.querySelector('#rows tbody tr:not(.waits-for-rows)');
  if (!row || window.tabHidden) return;
  window.seen.push({
    Now: trueNow(), State: document.body.dataset.state, Text: document.querySelector('#state-text').textContent,
    Banner: document.querySelector('#banner').hidden ? '' : document.querySelector('#banner').textContent,
    Holder: row.querySelector('.owner')?.textContent ?? '', Age: row.cells[3].textContent,
  });
}, 100);`

// A sighting is what the page showed at a moment.
type sighting struct {
	Now                              int64
	State, Text, Banner, Holder, Age string
}

// asOf returns the time that the page gives for what it shows, to the second, as the second of the day.
func (s *sighting) asOf() (second int, ok bool) {
	for _, text := range []string{s.Text, s.Banner} {
		for word := range strings.FieldsSeq(strings.NewReplacer(",", " ", ".", " ").Replace(text)) {
			if at, err := time.Parse(time.TimeOnly, word); err == nil {
				return at.Hour()*3600 + at.Minute()*60 + at.Second(), true
			}
		}
	}
	return 0, false
}

func secondOfDay(t time.Time) int { return int(t.UTC().Unix() % 86400) }

// visitByLink opens the page in a tab whose zone is UTC.
func visitByLink(t *testing.T, s *stand) *tab {
	t.Helper()
	tb := openTabFor(t, 3*time.Minute)
	call(tb, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
	call(tb, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: truthScript})
	tb.do(chromedp.Navigate(s.base + "/#token=" + token))
	t.Cleanup(func() { tb.check(s.base) })
	return tb
}

// A churn is a lock whose holder changes all the time, and what was true when.
type churn struct {
	mu   sync.Mutex // guards true
	true []truth
}

// A truth is a holder, and since when.
type truth struct {
	since  time.Time
	holder string
}

// heldIn reports whether the holder held at some time from one second to another.
func (c *churn) heldIn(holder string, from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, is := range c.true {
		if is.holder == holder && !is.since.After(to) && (i+1 == len(c.true) || !c.true[i+1].since.Before(from)) {
			return true
		}
	}
	return false
}

// run changes the holder some times a second, until end is closed.
func (c *churn) run(s *stand, end <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-end:
			return
		case <-time.After(time.Duration(50+rand.IntN(400)) * time.Millisecond):
		}
		l := mutex("/locks/a", fmt.Sprintf("holder-%d", n))
		l.Contenders[0].Created, l.Contenders[0].Czxid = time.Now(), int64(n+1)
		c.mu.Lock()
		c.true = append(c.true, truth{time.Now(), fmt.Sprintf("holder-%d", n)})
		c.mu.Unlock()
		at := time.Now()
		select {
		case s.script <- current(at, l):
		case <-end:
			return
		}
	}
}

// Whatever happens to the connection, the machine or the tab, what the page shows as live was true at the time that
// it gives, and that time is not after the latest byte from docent. Silence is noticed by the page's own
// clock.
func TestPage_shows_nothing_as_newer_than_it_is(t *testing.T) {
	l, s := linked(t)
	c, end := &churn{}, make(chan struct{})
	var churning sync.WaitGroup
	churning.Go(func() { c.run(s, end) })
	defer churning.Wait()
	defer close(end)
	tb := visitByLink(t, s)
	live := func() {
		t.Helper()
		tb.await("document.body.dataset.state === 'live' && seen.at(-1)?.State === 'live'")
	}
	lost := func(begun time.Time) {
		t.Helper()
		tb.await("document.body.dataset.state === 'lost' && document.querySelector('#banner').textContent.includes('has lost docent since')")
		if took := time.Since(begun); took > 9*time.Second {
			t.Errorf("silence was noticed after %v", took)
		}
	}
	outages := map[string]func(){
		"a connection that swallows all": func() { begun := time.Now(); l.swallow(); lost(begun); l.pass() },
		"a connection that ends":         func() { l.cut() },
		"a server that can't be reached": func() { begun := time.Now(); l.swallow(); l.cut(); lost(begun); l.pass() },
		"a machine that sleeps": func() {
			l.swallow()
			get[int](tb, "window.slept += 3600000")
			lost(time.Now())
			l.pass()
		},
		"a tab that was hidden": func() {
			get[bool](tb, "hide(true), true")
			begun := time.Now()
			l.swallow()
			get[int](tb, "window.slept += 20000") // it was hidden for so long
			get[bool](tb, "hide(false), true")
			if state := get[string](tb, "document.body.dataset.state"); state != "lost" {
				t.Errorf("a tab that becomes visible after 20 s says %q", state)
			}
			lost(begun)
			l.pass()
		},
	}
	for name, outage := range outages {
		live()
		get[int](tb, "window.seen.length = 0")
		begun := time.Now()
		outage()
		live()
		tb.await("seen.length >= 15")
		all := get[[]sighting](tb, "seen")
		dark := 0
		for _, is := range all {
			if is.State != "live" {
				dark++
			}
			judgeTruth(t, name, c, is)
		}
		t.Logf("%s: %d sightings in %v, %d of them not live", name, len(all), time.Since(begun).Round(time.Second), dark)
	}
}

// judgeTruth fails the test if the page claimed what was not true.
func judgeTruth(t *testing.T, outage string, c *churn, is sighting) {
	t.Helper()
	second, ok := is.asOf()
	if !ok {
		t.Errorf("%s: the page gives no time: %+v", outage, is)
		return
	}
	now := time.UnixMilli(is.Now)
	age := (secondOfDay(now) - second + 86400) % 86400
	if age > 43200 { // it is ahead
		age -= 86400
	}
	from := time.Unix(now.Unix()-int64(age), 0)
	if age < 0 || age > 30 {
		t.Errorf("%s: at %v the page shows what was at %v: %+v", outage, now.UTC(), from.UTC(), is)
	}
	if is.State == "live" && age > 8 {
		t.Errorf("%s: live for %d s without a message: %+v", outage, age, is)
	}
	const way = 700 * time.Millisecond // from docent's view to the page
	if !c.heldIn(is.Holder, from.Add(-way), from.Add(time.Second)) {
		t.Errorf("%s: %q did not hold at %v: %+v", outage, is.Holder, from.UTC(), is)
	}
}

// Ages stand still while docent says nothing.
func TestPage_ages_stop_with_the_messages(t *testing.T) {
	l, s := linked(t)
	held := mutex("/locks/a", "alice")
	held.Contenders[0].Created = time.Now().Add(-10 * time.Second)
	s.show(held)
	tb := visitByLink(t, s)
	tb.await("document.body.dataset.state === 'live' && /^1[1-9]s$/.test(document.querySelector('#rows tbody tr').cells[3].textContent)")
	l.swallow()
	tb.await("document.body.dataset.state === 'lost'")
	get[int](tb, "window.slept += 60000")
	tb.await("document.querySelector('#banner').textContent.includes('UTC')")
	frozen := get[string](tb, "new Promise((done) => setTimeout(() => done(document.querySelector('#rows tbody tr').cells[3].textContent), 2500))")
	all := get[[]sighting](tb, "seen")
	for _, is := range all[max(0, len(all)-20):] {
		if is.Age != frozen {
			t.Errorf("the age was %s, and is %s now", is.Age, frozen)
		}
	}
	if age, err := time.ParseDuration(frozen); err != nil || age > 18*time.Second {
		t.Errorf("%v: the hold is shown as %s old, after at most some seconds of messages", err, frozen)
	}
}

// A page that is paused answers: a queue, find and sort show the present state, once, and say of when it is.
func TestPage_answers_while_paused(t *testing.T) {
	s := serve(t, nil)
	s.show(mutex("/locks/apple", "alice", "bob"), mutex("/locks/pear", "carol"))
	tb := visitByLink(t, s)
	tb.awaitText("#rows tbody", "pear")
	tb.do(chromedp.Click("#pause"))
	tb.awaitText("#state-text", "paused, as of")
	s.published(mutex("/locks/apple", "alice", "bob"), mutex("/locks/pear", "carol", "dave"))
	tb.do(chromedp.Click("#rows .path"))
	tb.awaitText("#contenders", "bob")
	tb.await("document.querySelectorAll('#rows tbody tr')[1].cells[4].textContent === '1'") // of the same moment
	s.published(mutex("/locks/apple", "alice", "bob"), mutex("/locks/pear", "carol", "dave", "erin"))
	if get[string](tb, "new Promise((done) => setTimeout(() => done(document.querySelectorAll('#rows tbody tr')[1].cells[4].textContent), 1500))") != "1" {
		t.Error("a page that is paused goes on by itself")
	}
	tb.do(chromedp.Focus("#find"), chromedp.KeyEvent("pear"))
	tb.await("document.querySelectorAll('#rows tbody tr').length === 1")
	tb.awaitText("#state-text", "paused, as of")
	tb.do(chromedp.Click("[data-sort=lock]"))
	tb.awaitText("#state-text", "paused, as of")
	tb.do(chromedp.Click("#pause"))
	tb.await("document.body.dataset.state === 'live'")
}

// What a page that is paused asks for while ZooKeeper is lost is of the time of that loss, not of the answer.
func TestPage_paused_says_when_ZooKeeper_was_lost(t *testing.T) {
	s := serve(t, nil)
	held := mutex("/locks/apple", "alice", "bob")
	s.show(held)
	tb := visitByLink(t, s)
	tb.awaitText("#rows tbody", "apple")
	tb.do(chromedp.Click("#pause"))
	tb.awaitText("#state-text", "paused, as of")
	lost := time.Now().Add(-time.Hour)
	view := current(lost, held)
	view.State, view.Cause = inspect.Stale, framework.ErrNotConnected
	for range 2 { // the second is taken once the first is published
		s.script <- view
	}
	tb.do(chromedp.Focus("#find"), chromedp.KeyEvent("apple"))
	tb.awaitText("#banner", "docent has lost ZooKeeper since")
	at := lost.UTC().Format(time.TimeOnly)
	if text := get[string](tb, "document.querySelector('#state-text').textContent"); !strings.Contains(text, "paused, as of") || !strings.Contains(text, at) {
		t.Errorf("ZooKeeper is lost since %s: %s", at, text)
	}
}

// A page that is paused says so if docent can't be reached, and since when, and of when is what it shows.
func TestPage_paused_says_when_docent_was_lost(t *testing.T) {
	l, s := linked(t)
	s.show(mutex("/locks/apple", "alice"))
	tb := visitByLink(t, s)
	tb.awaitText("#rows tbody", "apple")
	tb.do(chromedp.Click("#pause"))
	tb.awaitText("#state-text", "paused, as of")
	shown := get[string](tb, "document.querySelector('#state-text').textContent.replace('paused, as of ', '')")
	l.swallow()
	tb.awaitText("#banner", "This page has lost docent since")
	tb.awaitText("#banner", "shows what was there at "+shown)
	l.pass()
	tb.awaitText("#state-text", "paused, as of "+shown)
}

// Without JavaScript the page has no controls that do nothing.
func TestPage_without_JavaScript(t *testing.T) {
	s := serve(t, nil)
	tb := openTab(t)
	call(tb, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	tb.do(chromedp.Navigate(s.base + "/#token=" + token))
	tb.awaitText(".banner", "This page needs JavaScript")
	if n := get[int](tb, "[...document.querySelectorAll('button, input, table')].filter((e) => e.checkVisibility()).length"); n > 0 {
		t.Errorf("%d controls are shown", n)
	}
}

// Times have their zone, and the day if that is another one.
func TestPage_says_the_zone_of_times(t *testing.T) {
	s := serve(t, nil)
	held := mutex("/locks/a", "alice")
	held.Contenders[0].Created = time.Now().Add(-72 * time.Hour)
	s.show(held)
	tb := openTab(t)
	call(tb, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	tb.do(chromedp.Navigate(s.base + "/#token=" + token))
	tb.await("document.body.dataset.state === 'live'")
	zone := time.FixedZone("", 19800)
	if text := get[string](tb, "document.querySelector('#state-text').textContent"); !strings.HasSuffix(text, "GMT+5:30") {
		t.Errorf("no zone: %s", text)
	}
	tb.do(chromedp.Click("#holds-toggle"))
	day := held.Contenders[0].Created.In(zone).Format("2 Jan 2006 15:04:05 ") + "GMT+5:30"
	tb.awaitText("#holds-table", day)
	tb.await("[...document.querySelectorAll('#timeline .tick-text')].some((e) => e.textContent === 'GMT+5:30')")
}
