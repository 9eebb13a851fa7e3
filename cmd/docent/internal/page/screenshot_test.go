package page_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/internal/must"
)

var (
	shots   = flag.String("screenshots", "", "directory for pictures of the page, in light and dark, at five widths")
	shotURL = flag.String("page", "", "URL of a page, as docent prints it; without it, of the scenes of this file")
)

// scenes are what the page is looked at with, besides the demo.
func scenes() map[string][]inspect.Lock {
	long := strings.Repeat("a-name-of-600-characters-", 24)
	crowd := []string{"holder"}
	for i := range 1_000 {
		crowd = append(crowd, fmt.Sprintf("waiter-%d", i))
	}
	fleet := func(n int) (locks []inspect.Lock) {
		for i := range n {
			l := mutex(fmt.Sprintf("/locks/shop/%03d-orders", i), fmt.Sprintf("worker-%d", i))
			if i%4 == 1 {
				l = mutex(l.Path, fmt.Sprintf("worker-%d", i), fmt.Sprintf("waiter-%d", i), fmt.Sprintf("other-%d", i))
			}
			if i%7 == 3 {
				l = bySessions(l, inspect.Curator, int64(i))
			}
			locks = append(locks, aged(l, i))
		}
		return locks
	}
	var findings []inspect.Lock
	for i := range 150 {
		one, two := fmt.Sprintf("left-%d", i), fmt.Sprintf("right-%d", i)
		findings = append(findings, mutex(fmt.Sprintf("/locks/pair-%03d/a", i), one, two), mutex(fmt.Sprintf("/locks/pair-%03d/b", i), two, one))
	}
	return map[string][]inspect.Lock{
		"1-lock":       {aged(mutex("/locks/report", "nightly"), 3)},
		"50-locks":     fleet(50),
		"10000-locks":  manyLocks(10_000),
		"deadlock":     append(fleet(200), aged(mutex("/locks/stock", "billing", "import", "audit"), 40), aged(mutex("/locks/orders", "import", "billing"), 41)),
		"1000-waiters": append(fleet(6), aged(mutex("/locks/crowd", crowd...), 60)),
		"hostile": {
			mutex("/locks/"+long, long, long+"2"), mutex("/locks/<img src=x onerror=alert(1)>", "\u202egnitset", "\x00\x1b[31mred"),
			mutex("/locks/日本語のロック名", "所有者", "\U0001F512\U0001F512"), mutex("/locks/"+strings.Repeat("x/", 60), "deep"),
			mutex("/locks/\u200b\u200b", "zero-width", "\u0301\u0301\u0301combining"),
		},
		"150-findings": findings,
	}
}

// manyLocks returns n locks with a holder. Each tenth has a waiter, too.
func manyLocks(n int) []inspect.Lock {
	locks := make([]inspect.Lock, n)
	for i := range locks {
		owners := []string{fmt.Sprintf("owner-%d", i)}
		if i%10 == 0 {
			owners = append(owners, fmt.Sprintf("waiter-%d", i))
		}
		locks[i] = mutex(fmt.Sprintf("/locks/%05d", i), owners...)
	}
	return locks
}

// bySessions has the contenders show a session and an address alone.
func bySessions(l inspect.Lock, by inspect.Library, session int64) inspect.Lock {
	for i := range l.Contenders {
		c := &l.Contenders[i]
		c.By, c.Meta, c.Label, c.Session = by, nil, "10.0.3.9", 0x10000a1b2c30000+session+int64(i)
		old := c.Znode
		c.Znode = fmt.Sprintf("%s/_c_9f3a1c%02x-0000-4000-8000-000000000000-lock-%010d", l.Path, i, i)
		c.Sequence = int64(i)
		for j := range l.Contenders {
			for k, znode := range l.Contenders[j].WaitsFor {
				if znode == old {
					l.Contenders[j].WaitsFor[k] = c.Znode
				}
			}
		}
	}
	return l
}

// aged has the contenders have come some time ago.
func aged(l inspect.Lock, n int) inspect.Lock {
	for i := range l.Contenders {
		l.Contenders[i].Created = time.Now().Add(-time.Duration(n*7+20-min(i, 15)) * time.Second)
	}
	return l
}

// With -screenshots, this makes pictures of the scenes; with -page as well, those of docs/img of the demo.
// Look at them after a change of the page.
func TestScreenshots(t *testing.T) {
	if *shots == "" {
		t.Skip("no -screenshots: nothing is tested here")
	}
	if *shotURL != "" {
		shoot(t, *shotURL, "page", "")
		return
	}
	for name, locks := range scenes() {
		s := serve(t, func(c *page.Config) { c.Revoke = refuseAll })
		s.published(locks...)
		query := map[string]string{"1000-waiters": "?open=%2Flocks%2Fcrowd", "deadlock": "?open=%2Flocks%2Fstock"}[name]
		shoot(t, s.base+"/"+query+"#token="+token, name, query)
	}
}

func shoot(t *testing.T, url, name, query string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 1280, 1100, 1024, 360} {
			file := filepath.Join(*shots, fmt.Sprintf("%s-%s-%d.png", name, scheme, width))
			t.Run(filepath.Base(file), func(t *testing.T) { shot(t, url, query, scheme, width, file) })
		}
	}
}

func shot(t *testing.T, url, query, scheme string, width int64, file string) {
	t.Helper()
	tb := openTab(t)
	call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	tb.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(url))
	tb.await("document.body.dataset.state === 'live' && document.querySelector('#graph svg, #graph .empty')")
	if query != "" {
		tb.await("document.querySelectorAll('#contenders tbody tr').length > 0")
	}
	image := must.Get(chromedp.Run(tb.ctx, chromedp.FullScreenshot(100)))(t)
	must.OK(t, os.WriteFile(file, image, 0o644))
}
