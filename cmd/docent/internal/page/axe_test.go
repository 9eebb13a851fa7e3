package page_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

// axe returns axe-core, by which a browser looks for what keeps people from using a page.
func axe(t *testing.T) string {
	t.Helper()
	file := os.Getenv("AXE")
	if file == "" {
		found, err := exec.CommandContext(t.Context(), "../../../../scripts/setup-axe").Output()
		if err != nil {
			apptest.Missing(t, fmt.Sprintf("no axe-core, which scripts/setup-axe fetches: %v", err))
		}
		file = strings.TrimSpace(string(found))
	}
	script := must.Get(os.ReadFile(file))(t)
	return string(script)
}

// axeScript runs all rules, best practices included, and returns what they found.
const axeScript = `axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify({
  passes: found.passes.length,
  violations: found.violations.map((v) => v.id + ' (' + v.impact + '): ' + v.nodes.slice(0, 3).map((n) => n.target + ' ' + (n.any[0]?.message ?? '')).join('; ')),
}))`

// axe has no finding, in each state of the page, in light and dark, narrow and wide.
func TestPage_has_no_finding_of_axe(t *testing.T) {
	script := axe(t)
	s := serve(t, func(c *page.Config) { c.Revoke = refuseAll })
	s.published(schedulers()...)
	tb := openTabFor(t, 3*time.Minute)
	tb.do(chromedp.Navigate(s.base + "/?open=/locks/report#token=" + token))
	tb.await("document.querySelectorAll('#contenders tbody tr').length === 3")
	tb.awaitText("#findings", "deadlock")
	get[bool](tb, script+"; true")
	live := []inspect.Lock{mutex("/locks/report", "scheduler-a", "scheduler-b")}
	for _, state := range []struct {
		name  string
		begin func()
		want  string // a state of the page
	}{
		{"live", func() {}, "live"},
		{"tables", func() { tb.do(chromedp.Click("#graph-toggle"), chromedp.Click("#holds-toggle")) }, "live"},
		{"asked", func() { tb.do(chromedp.Click("#contenders .ask button")) }, "live"},
		{"paused", func() { tb.do(chromedp.Click("#ask button[value=cancel]"), chromedp.Click("#pause")) }, "paused"},
		{"stale", func() {
			tb.do(chromedp.Click("#pause"))
			for range 2 {
				s.script <- inspect.View{State: inspect.Stale, Since: time.Now(), Cause: framework.ErrNotConnected, Snapshot: inspect.Snapshot{
					At: time.Now(), Locks: live, LeftOut: 3,
					Unread: []inspect.Unread{{Path: "/locks/hr", Err: framework.ErrNoAuth}},
				}}
			}
		}, "stale"},
		{"scanning", func() { s.view(inspect.Scanning, nil) }, "scanning"},
		{"refused", func() { // it does not seem to be read forever
			s.view(inspect.Scanning, framework.ErrNoAuth)
			tb.awaitText("#banner", "docent can't read /locks: no_auth")
			tb.awaitText("#state-text", "not allowed")
		}, "refused"},
		{"lost", func() {
			get[bool](tb, "window.fetch = () => Promise.reject(new Error('gone')), document.querySelector('#find').dispatchEvent(new Event('input')), true")
		}, "lost"},
		{"failed", func() { get[bool](tb, "setTimeout(() => { throw new Error('broken') }), true") }, "failed"},
	} {
		state.begin()
		tb.await(fmt.Sprintf("document.body.dataset.state === %q", state.want))
		for _, scheme := range []string{"light", "dark"} {
			call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			for _, width := range []int64{360, 1280} {
				tb.do(chromedp.EmulateViewport(width, 900))
				tb.await(fmt.Sprintf("innerWidth === %d && matchMedia('(prefers-color-scheme: %s)').matches", width, scheme))
				if got := get[string](tb, axeScript); !strings.Contains(got, `"violations":[]`) || strings.Contains(got, `"passes":0`) {
					t.Errorf("%s, %s, %d px: %s", state.name, scheme, width, got)
				}
				if got := get[string](tb, contrastScript); !strings.Contains(got, `"weak":[]`) || strings.Contains(got, `"seen":0`) {
					t.Errorf("%s, %s, %d px: %s", state.name, scheme, width, got)
				}
			}
		}
	}
}
