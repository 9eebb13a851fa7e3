package page_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
)

// view shows a view that is no current one.
func (s *stand) view(state inspect.ViewState, cause error) {
	for range 3 { // the third is taken when the first is published
		s.script <- inspect.View{State: state, Since: time.Unix(1_700_000_000, 0), Cause: cause}
	}
}

// /healthz says whether the page follows the ensemble, and why not. It needs no token, and names no path.
func TestServer_healthz(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	expect := func(what string, status int, want string) {
		t.Helper()
		reply := s.ask(t, "GET", "/healthz", "", "Authorization: ")
		if got := text(t, reply); reply.StatusCode != status || got != want+"\n" {
			t.Errorf("%s: %d %q, want %d %q", what, reply.StatusCode, got, status, want)
		}
	}
	forbidden := fmt.Errorf("inspect: ready /secret/place: %w", framework.ErrNoAuth)
	expect("at the start", http.StatusServiceUnavailable, "connecting")
	s.view(inspect.Connecting, framework.ErrNotConnected)
	expect("connecting", http.StatusServiceUnavailable, "connecting: "+zktel.ErrorType(framework.ErrNotConnected))
	s.view(inspect.Scanning, errors.New("the cache is being filled"))
	expect("scanning", http.StatusServiceUnavailable, "scanning")
	s.view(inspect.Scanning, forbidden)
	expect("a root that may not be read", http.StatusServiceUnavailable, "scanning: the root can't be read: no_auth")
	s.published(mutex("/locks/a", "alice"))
	expect("live", http.StatusOK, "live")
	s.view(inspect.Stale, framework.ErrNotConnected)
	expect("stale", http.StatusServiceUnavailable, "stale since 2023-11-14T22:13:20Z: "+zktel.ErrorType(framework.ErrNotConnected))
	if reply := s.ask(t, "GET", "/healthz", "", "Host: evil.example"); reply.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a rebound host: %d", reply.StatusCode)
	}
}

// sample1 is a line of Prometheus' text format.
var sample1 = regexp.MustCompile(`^[a-z_]+(\{[a-z]+="([^"\\\n]|\\["\\n])*"(,[a-z]+="([^"\\\n]|\\["\\n])*")*\})? [0-9.e+-]+$`)

// /metrics has series of the locks that matter most, as many as the bound allows, and counts the others.
// No name of a lock breaks the format.
func TestServer_metrics_of_each_lock(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	locks := []inspect.Lock{
		mutex("/locks/\"quoted\"\\", "alice"), mutex("/locks/\x00\n\xff", "bob", "carol"), mutex("/locks/"+strings.Repeat("x", 600), "dave"),
		mutex("/locks/invalid\xfe", "a"), mutex("/locks/invalid\xff", "b"),
	}
	for i := range 298 {
		locks = append(locks, mutex(fmt.Sprintf("/locks/z-%03d", i), "erin"))
	}
	s.published(append(locks, mutex("/locks/zy", "mallory", "trent"), mutex("/locks/zz", "trent", "mallory"))...)
	metrics := text(t, s.ask(t, "GET", "/metrics", ""))
	if strings.Contains(metrics, "mallory") || strings.Contains(metrics, "host") {
		t.Error("a label has a contender's name")
	}
	series := map[string]int{}
	for line := range strings.Lines(metrics) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		if !sample1.MatchString(line) {
			t.Errorf("no sample: %q", line)
		}
		id := line[:strings.LastIndex(line, " ")]
		if series[id]++; series[id] > 1 {
			t.Errorf("twice: %s", id)
		}
	}
	for _, want := range []string{
		`docent_lock_holders{lock="/locks/\"quoted\"\\",kind="mutex"} 1`,
		"docent_lock_waiting{lock=\"/locks/\x00\\n\ufffd\",kind=\"mutex\"} 1",
		"docent_lock_series_left_out 105", "docent_lock_left_out_znodes 0", "docent_locks_held 305",
		`docent_locks{kind="mutex"} 305`, "docent_lock_waiters 3", "docent_lock_deadlocks 1", "docent_view_live 1",
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	waits := regexp.MustCompile(`docent_lock_longest_wait_seconds\{lock="/locks/\x00[^}]*\} (\S+)`).FindStringSubmatch(metrics)
	if waits == nil || waits[1] == "0" {
		t.Errorf("the longest wait: %q", waits)
	}
}

// A snapshot is the first message of a stream, as the page reads it.
type snapshot struct {
	Summary struct {
		State     string `json:"state"`
		Deadlocks int    `json:"deadlocks"`
	} `json:"summary"`
	Findings []struct {
		Severity string   `json:"severity"`
		Locks    []string `json:"locks"`
	} `json:"findings"`
	Order []string `json:"order"`
	Rows  []struct {
		Path string `json:"path"`
		Mark string `json:"mark"`
	} `json:"rows"`
	Graph struct {
		Edges []struct {
			Lock string `json:"lock"`
			Mark string `json:"mark"`
		} `json:"edges"`
	} `json:"graph"`
	Queue struct {
		Total, More      int
		Contenders, Tail []struct{ Owner, Name, Session, Attempt string }
	} `json:"queue"`
	Holds []laneSeen `json:"holds"`
}

// readSnapshot reads the first message of a stream.
func readSnapshot(t *testing.T, stream io.Reader) (got snapshot) {
	t.Helper()
	_, data, _ := strings.Cut(readMessage(t, bufio.NewReader(stream)), "\ndata: ")
	must.OK(t, json.Unmarshal([]byte(data), &got))
	return got
}

func (s *stand) snapshot(t *testing.T, query string) snapshot {
	t.Helper()
	return readSnapshot(t, s.ask(t, "GET", "/events"+query, "").Body)
}

// By default the lock with the longest wait is first, then those of deadlocks, then the others that
// contenders wait for, and the rest by how long they are held.
func TestServer_sorts_by_what_matters(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.published(
		aged(mutex("/locks/a", "alice"), 5), aged(mutex("/locks/b", "bob"), 9), aged(mutex("/locks/c", "carol", "x"), 20),
		aged(mutex("/locks/d", "dave", "erin"), 3), aged(mutex("/locks/e", "erin", "dave"), 2), aged(mutex("/locks/f", "frank", "y"), 10),
	)
	for query, want := range map[string]string{
		"":             "/locks/c /locks/d /locks/e /locks/f /locks/b /locks/a",
		"?sort=matter": "/locks/c /locks/d /locks/e /locks/f /locks/b /locks/a",
		"?sort=lock":   "/locks/a /locks/b /locks/c /locks/d /locks/e /locks/f",
		"?waiting=1":   "/locks/c /locks/d /locks/e /locks/f",
		"?desc=1":      "/locks/a /locks/b /locks/f /locks/e /locks/d /locks/c",
	} {
		if got := strings.Join(s.snapshot(t, query).Order, " "); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

// Of a long queue the page has the head and the tail, or all of it.
func TestServer_folds_a_long_queue(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	owners := []string{"holder"}
	for i := range 1_000 {
		owners = append(owners, fmt.Sprintf("waiter-%d", i))
	}
	s.published(mutex("/locks/long", owners...), mutex("/locks/short", owners[:8]...))
	q := s.snapshot(t, "?open=%2Flocks%2Flong").Queue
	if q.Total != 1_001 || q.More != 994 || len(q.Contenders) != 4 || len(q.Tail) != 3 || q.Tail[2].Owner != "waiter-999" {
		t.Errorf("%+v", q)
	}
	if q := s.snapshot(t, "?open=%2Flocks%2Flong&whole=1").Queue; len(q.Contenders) != 1_000 || q.More != 1 || len(q.Tail) != 0 {
		t.Errorf("the whole queue: %d, %d more, %d", len(q.Contenders), q.More, len(q.Tail))
	}
	if q := s.snapshot(t, "?open=%2Flocks%2Fshort").Queue; len(q.Contenders) != 8 || q.More != 0 || len(q.Tail) != 0 {
		t.Errorf("a short queue: %+v", q)
	}
}

// Two threads of one Curator client, and two clients of one host, are told apart.
func TestServer_distinguishes_contenders_of_Curator(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.published(bySessions(mutex("/locks/a", "x", "y", "z"), inspect.Curator, 4))
	seen := map[string]bool{}
	for _, c := range s.snapshot(t, "?open=%2Flocks%2Fa").Queue.Contenders {
		if c.Name != "10.0.3.9" || c.Attempt == "" {
			t.Errorf("%+v", c)
		}
		seen[c.Session+c.Attempt] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d of 3 are told apart: %v", len(seen), seen)
	}
}

// The filter, the order and the lock whose queue is open are in the address. Another tab shows the same,
// and "back" leads to the lock before.
func TestPage_keeps_its_choice_in_the_address(t *testing.T) {
	s, tb := shown(t)
	s.published(mutex("/locks/apple", "alice", "bob"), mutex("/locks/apricot", "carol", "dan"), mutex("/locks/pear", "erin"))
	tb.awaitText("#rows tbody", "pear")
	tb.do(chromedp.Focus("#find"), chromedp.KeyEvent("ap"))
	tb.await("document.querySelectorAll('#rows tbody tr').length === 2 && location.search === '?find=ap'")
	tb.do(chromedp.Click("#rows tr:nth-child(1) .path"))
	tb.awaitText("#queue-title", "/locks/apple")
	tb.do(chromedp.Click("#rows tr:nth-child(2) .path"))
	tb.awaitText("#contenders", "carol")
	tb.do(chromedp.Evaluate[chromedp.Void]("history.back()"))
	tb.awaitText("#contenders", "alice")
	address := get[string](tb, "location.href")
	if !strings.Contains(address, "?find=ap&open=%2Flocks%2Fapple#token=") {
		t.Errorf("the address is %s", address)
	}
	other := openTab(t)
	other.do(chromedp.Navigate(address))
	other.awaitText("#contenders", "alice")
	other.await("document.querySelectorAll('#rows tbody tr').length === 2 && document.querySelector('#find').value === 'ap'")
}

// More than three findings are folded, so that the first lock is on the screen.
func TestPage_folds_findings(t *testing.T) {
	s, tb := shown(t)
	s.published(scenes()["150-findings"]...)
	tb.await("document.querySelectorAll('#findings li').length === 3")
	tb.awaitText("#findings-more", "Show 147 more findings")
	if top := get[float64](tb, "document.querySelector('#rows tbody tr').getBoundingClientRect().top"); top > 700 {
		t.Errorf("the first lock is %.0f px down", top)
	}
	tb.do(chromedp.Click("#findings-more"))
	tb.await("document.querySelectorAll('#findings li').length === 150")
}

// A name of 600 characters makes no row higher than four lines, and no table wider than its place.
func TestPage_of_long_names(t *testing.T) {
	s, tb := shown(t)
	s.published(scenes()["hostile"]...)
	tb.await("document.querySelectorAll('#rows tbody tr').length === 5")
	if high := get[float64](tb, "Math.max(...[...document.querySelectorAll('#rows tbody tr')].map((r) => r.offsetHeight))"); high > 90 {
		t.Errorf("a row is %.0f px high", high)
	}
	if wide := get[float64](tb, "document.querySelector('#rows-scroll').scrollWidth - document.querySelector('#rows-scroll').clientWidth"); wide > 0 {
		t.Errorf("the table is %.0f px too wide", wide)
	}
}

// The graph is moved and zoomed by keys and buttons, and keeps that over updates.
func TestPage_moves_the_graph(t *testing.T) {
	s, tb := shown(t)
	s.published(mutex("/locks/a", "alice", "bob", "carol"))
	tb.await("document.querySelectorAll('#graph .node').length === 3 && document.querySelector('#graph svg').viewBox.baseVal?.width > 0")
	const width = "document.querySelector('#graph svg').viewBox.baseVal.width"
	before := get[float64](tb, width)
	tb.do(chromedp.Focus("#graph svg"), chromedp.KeyEvent("+"))
	closer := get[float64](tb, width)
	if closer >= before {
		t.Errorf("zoomed in, the graph shows %.0f units, before %.0f", closer, before)
	}
	s.published(mutex("/locks/a", "alice", "bob", "carol", "dave"))
	tb.await("document.querySelectorAll('#graph .node').length === 4")
	if got := get[float64](tb, width); got != closer {
		t.Errorf("after an update it shows %.0f units, before %.0f", got, closer)
	}
	if !get[bool](tb, "document.activeElement.matches('#graph svg')") {
		t.Error("after an update the graph has lost the focus")
	}
	tb.do(chromedp.Click("#graph-fit"))
	tb.await(width + " !== " + fmt.Sprint(closer))
}

// No heading is wider than its cell, and no number or age needs the cell's margin, with a place of four digits and ages of years.
func TestPage_cells_fit(t *testing.T) {
	s := serve(t, nil)
	locks := append(scenes()["1000-waiters"], scenes()["150-findings"][:2]...)
	s.published(locks...)
	tb := openTab(t)
	tb.do(chromedp.Navigate(s.base + "/?open=%2Flocks%2Fcrowd#token=" + token))
	tb.await("document.querySelectorAll('#contenders tbody tr').length === 8")
	for _, width := range []int64{1440, 1024, 360} {
		tb.do(chromedp.EmulateViewport(width, 900))
		tb.await(fmt.Sprintf("innerWidth === %d", width))
		wide := get[string](tb, `[...document.querySelectorAll('#rows :is(thead th, td.number), #contenders :is(th, td.number)')].filter((cell) => {
			const text = document.createRange();
			text.selectNodeContents(cell);
			const inner = text.getBoundingClientRect(), outer = cell.getBoundingClientRect(), style = getComputedStyle(cell);
			return outer.width > 1 && inner.right > outer.right - (cell.tagName === 'TD' ? parseFloat(style.paddingRight) : 0) + 0.5;
		}).map((cell) => cell.tagName + ' ' + cell.textContent.trim().slice(0, 20)).join(', ')`)
		if wide != "" {
			t.Errorf("%d px: wider than their cells: %s", width, wide)
		}
	}
}
