package page_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

var scale = flag.Int("scale", 0, "number of locks with a holder, each tenth with a waiter, of TestScale")

// The bars of TestScale.
const (
	mostMemory = 100 << 20
	mostUpdate = 100 * time.Millisecond
)

// clockScript notes when the first row's text changes.
const clockScript = `addEventListener('DOMContentLoaded', () => {
  window.changes = [];
  new MutationObserver(() => {
    const row = document.querySelector('#rows .path')?.closest('tr');
    if (!row) return;
    const text = row.querySelector('td:nth-child(3)').textContent;
    if (text !== window.changes.at(-1)?.text) window.changes.push({ text, at: Date.now() });
  }).observe(document.querySelector('#rows'), { subtree: true, childList: true, characterData: true });
});`

// With -scale, this compares the page of that many locks with the bars.
func TestScale(t *testing.T) {
	if *scale == 0 {
		t.Skip("no -scale: nothing is measured here")
	}
	addr := ensemble(t)
	lockPath := func(i int) string { return fmt.Sprintf("/locks/%05d", i) }
	var filling sync.WaitGroup
	for part := range 8 {
		c := newCurator(t, apptest.Client(t, addr), 1, uint64(part))
		filling.Go(func() {
			for i := part; i < *scale; i += 8 {
				c.contend(lockPath(i))
				if i%10 == 1 {
					c.contend(lockPath(i))
				}
			}
		})
	}
	filling.Wait()
	begun := time.Now()
	p := startProgram(t, "--connect", addr, "/locks")
	tb := openTabFor(t, 5*time.Minute)
	call(tb, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: clockScript})
	tb.do(chromedp.Navigate(strings.Replace(p.url, "/#", "/?sort=lock#", 1))) // the first row is the first lock
	zktest.Eventually(t, 5*time.Minute, "all rows", func() bool {
		metrics := text(t, p.ask(t, "GET", "/metrics", ""))
		return strings.Contains(metrics, fmt.Sprintf("docent_locks{kind=\"mutex\"} %d\n", *scale)) && strings.Contains(metrics, "docent_view_live 1\n")
	})
	t.Logf("all rows known after %v", time.Since(begun).Round(time.Millisecond))
	tb.await("document.body.dataset.state === 'live' && document.querySelectorAll('#rows .path').length === Math.min(200, " + strconv.Itoa(*scale) + ")")
	measureUpdates(t, tb, apptest.Client(t, addr), lockPath(0))
	rss, peak := memory(t, p.Process.Pid)
	t.Logf("resident memory of docent: %d MB now, %d MB at most", rss>>20, peak>>20)
	if peak > mostMemory {
		t.Errorf("docent took %d MB, want %d MB at most", peak>>20, mostMemory>>20)
	}
	tb.check(p.base)
}

// measureUpdates has the lock change hands, and measures from the release until the row shows the next holder, which
// waited.
func measureUpdates(t *testing.T, tb *tab, client *framework.Client, path string) {
	t.Helper()
	c := newCurator(t, client, 2, 0)
	children, _, err := client.Children(t.Context(), path)
	must.OK(t, err)
	held := path + "/" + children[0]
	var took []time.Duration
	for i := range 7 {
		c.address = fmt.Sprintf("next-%d", i)
		next := c.contend(path)
		tb.await("document.querySelector('#rows tbody td:nth-child(5)').textContent === '1'")
		<-time.After(3 * time.Second) // the second look is over
		before := time.Now()
		c.release(held)
		shown := fmt.Sprintf("changes.find((c) => c.text.includes(%q))", c.address)
		tb.await(shown)
		took = append(took, time.UnixMilli(get[int64](tb, shown+".at")).Sub(before))
		held = next
	}
	slices.Sort(took)
	t.Logf("from release to the next owner's row: %v at the median, %v at most", took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > mostUpdate {
		t.Errorf("an update took %v at the median, want %v at most", median, mostUpdate)
	}
}

// memory returns what the process has in memory, now and at most, in bytes.
func memory(t *testing.T, pid int) (now, most int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		apptest.Missing(t, fmt.Sprintf("no /proc: %v", err))
	}
	field := func(name string) int {
		m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
		if m == nil {
			t.Fatalf("no %s in %s", name, status)
		}
		kB, _ := strconv.Atoi(string(m[1])) // digits
		return kB << 10
	}
	return field("VmRSS"), field("VmHWM")
}
