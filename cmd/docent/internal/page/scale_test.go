package page_test

import (
	"context"
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
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

var scale = flag.Int("scale", 0, "number of locks with a holder on a real server, each tenth with a waiter, of TestScale")

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
	server := zktest.Run(t)
	holders := clients(t, server, 10)
	leases := holdAll(t, holders, *scale)
	stop := awaitAll(t, clients(t, server, 10), *scale/10)
	defer stop()
	begun := time.Now()
	p := startProgram(t, "--connect", server.Addr(), "/locks")
	tb := openTabFor(t, 5*time.Minute)
	call(tb, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: clockScript})
	tb.do(chromedp.Navigate(strings.Replace(p.url, "/#", "/?sort=lock#", 1))) // the first row is the first lock
	zktest.Eventually(t, 5*time.Minute, "all rows", func() bool {
		metrics := text(t, p.ask(t, "GET", "/metrics", ""))
		return strings.Contains(metrics, fmt.Sprintf("docent_locks{kind=\"mutex\"} %d\n", *scale)) && strings.Contains(metrics, "docent_view_live 1\n")
	})
	t.Logf("all rows known after %v", time.Since(begun).Round(time.Millisecond))
	tb.await("document.body.dataset.state === 'live' && document.querySelectorAll('#rows .path').length === Math.min(200, " + strconv.Itoa(*scale) + ")")
	measureUpdates(t, tb, holders[0], leases[0])
	rss, peak := memory(t, p.Process.Pid)
	t.Logf("resident memory of docent: %d MB now, %d MB at most", rss>>20, peak>>20)
	if peak > mostMemory {
		t.Errorf("docent took %d MB, want %d MB at most", peak>>20, mostMemory>>20)
	}
	tb.check(p.base)
}

// clients returns n clients.
func clients(t *testing.T, server *zktest.Server, n int) []*framework.Client {
	t.Helper()
	all := make([]*framework.Client, n)
	for i := range all {
		c := must.Get(framework.NewClient(server.Addr()))(t)
		t.Cleanup(func() { _ = c.Close() }) // the server ends with the test
		all[i] = c
	}
	return all
}

func lockPath(i int) string { return fmt.Sprintf("/locks/%05d", i) }

// holdAll acquires n locks. Lock i is of the client i modulo their number.
func holdAll(t *testing.T, clients []*framework.Client, n int) []*lock.Lease {
	t.Helper()
	leases := make([]*lock.Lease, n)
	var wg sync.WaitGroup
	for k, c := range clients {
		for part := range 4 {
			wg.Go(func() {
				for i := k + part*len(clients); i < n; i += 4 * len(clients) {
					leases[i] = acquire(t.Context(), t, c, lockPath(i), fmt.Sprintf("owner-%d", i))
				}
			})
		}
	}
	wg.Wait()
	return leases
}

func acquire(ctx context.Context, t *testing.T, c *framework.Client, path, owner string) *lock.Lease {
	t.Helper()
	m, err := lock.NewMutex(c, path)
	if err != nil {
		t.Error(err)
		return nil
	}
	l, err := m.Lock(lock.ContextWithOwner(ctx, lock.NewOwner(owner)))
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	return l
}

// awaitAll has a waiter at each of the first n locks but the first. stop withdraws them.
func awaitAll(t *testing.T, clients []*framework.Client, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range n {
		c := clients[i%len(clients)]
		wg.Go(func() { acquire(ctx, t, c, lockPath(i+1), fmt.Sprintf("waiter-%d", i)) })
	}
	zktest.Eventually(t, time.Minute, "all waiters", func() bool {
		waiting := 0
		for i := range n {
			stat, ok, err := clients[0].Exists(t.Context(), lockPath(i+1))
			if err == nil && ok && stat.NumChildren > 1 {
				waiting++
			}
		}
		return waiting == n
	})
	return func() { cancel(); wg.Wait() }
}

// measureUpdates has the first lock change hands, and measures from the release until the row shows the next
// holder, which waited.
func measureUpdates(t *testing.T, tb *tab, c *framework.Client, l *lock.Lease) {
	t.Helper()
	var took []time.Duration
	for i := range 7 {
		owner := fmt.Sprintf("next-%d", i)
		next := make(chan *lock.Lease, 1)
		go func() { next <- acquire(t.Context(), t, c, lockPath(0), owner) }() // received below
		tb.await("document.querySelector('#rows tbody td:nth-child(5)').textContent === '1'")
		<-time.After(3 * time.Second) // the second look is over
		before := time.Now()
		must.OK(t, l.Release(t.Context()))
		l = <-next
		shown := fmt.Sprintf("changes.find((c) => c.text.includes(%q))", owner)
		tb.await(shown)
		took = append(took, time.UnixMilli(get[int64](tb, shown+".at")).Sub(before))
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
