package page_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// The browser of the tests. It is started once, and each test has a context of its own in it.
var browser struct {
	sync.Once
	ctx  context.Context
	stop func()
}

// startBrowser returns a context of the browser. Without a browser the test is skipped, or fails if
// nothing may be skipped.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	name := os.Getenv("CHROMIUM")
	if name == "" {
		name = "chromium"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		apptest.Missing(t, fmt.Sprintf("no browser, which scripts/setup-chromium installs: %v", err))
	}
	browser.Do(func() {
		dir := must.Get(os.MkdirTemp("", "docent-page"))(t) //nolint:usetesting // the browser outlives the test
		opts := []chromedp.ExecAllocatorOption{
			chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.WindowSize(1400, 1000),
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
			chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		}
		allocator, end := chromedp.NewExecAllocator(context.Background(), opts...) // outlives the test
		shared, stop := chromedp.NewContext(allocator)
		browser.ctx = shared //nolint:fatcontext // all tests share it
		browser.stop = func() {
			stop()
			end()
			_ = os.RemoveAll(dir) // it is in the temporary directory anyway
		}
		if err := chromedp.Do(shared, chromedp.Navigate("about:blank")); err != nil {
			browser.stop()
			t.Fatal(err)
		}
	})
	return browser.ctx
}

// A tab is a tab of the browser, with what it asked for and complained about.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu        sync.Mutex // guards following
	requests  []string
	referrers []string
	faults    []string
}

// openTab opens a tab, empty yet. It is closed when the test has ended, or after a minute.
func openTab(t *testing.T) *tab {
	t.Helper()
	return openTabFor(t, time.Minute)
}

func openTabFor(t *testing.T, most time.Duration) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(startBrowser(t), chromedp.WithNewBrowserContext())
	ctx, end := context.WithTimeout(ctx, most)
	t.Cleanup(func() { end(); cancel() })
	tb := &tab{t: t, ctx: ctx}
	tb.do(chromedp.Navigate("about:blank"))
	must.OK(t, chromedp.Listen(ctx, tb.see))
	call(tb, network.Enable, network.EnableParams{})
	// Else another test's tab may take the focus.
	call(tb, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return tb
}

func (tb *tab) see(event any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		tb.requests = append(tb.requests, e.Request.URL)
		if referrer, ok := e.Request.Headers["Referer"].(string); ok && referrer != "" {
			tb.referrers = append(tb.referrers, referrer)
		}
	case *runtime.EventExceptionThrown:
		tb.faults = append(tb.faults, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	}
}

// do runs steps one after another.
func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	if err := chromedp.Do(tb.ctx, steps...); err != nil {
		tb.t.Fatal(err)
	}
}

// call sends a command of the browser's protocol.
func call[P, R any](tb *tab, command cdp.Command[P, R], params P) {
	tb.t.Helper()
	if _, err := chromedp.Call(tb.ctx, command, params); err != nil {
		tb.t.Fatal(err)
	}
}

// get returns the value of an expression of JavaScript. The page's own policy does not bind it.
func get[T any](tb *tab, expression string) T {
	tb.t.Helper()
	v, err := chromedp.Run(tb.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// await waits until an expression of JavaScript is true.
func (tb *tab) await(expression string) {
	tb.t.Helper()
	defer func() {
		if tb.t.Failed() {
			tb.t.Logf("the page:\n%s", get[string](tb, "document.body.innerText"))
		}
	}()
	zktest.Eventually(tb.t, 20*time.Second, expression, func() bool { return get[bool](tb, "Boolean("+expression+")") })
}

// awaitText waits until an element has a text.
func (tb *tab) awaitText(selector, text string) {
	tb.t.Helper()
	tb.await(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))", selector, text))
}

// check fails the test if the page threw an exception, or asked another host for anything.
func (tb *tab) check(base string) {
	tb.t.Helper()
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, fault := range tb.faults {
		tb.t.Errorf("the page threw: %s", fault)
	}
	elsewhere := slices.DeleteFunc(slices.Clone(tb.requests), func(url string) bool {
		return strings.HasPrefix(url, base) || strings.HasPrefix(url, "blob:"+base) || url == "about:blank"
	})
	if len(elsewhere) > 0 {
		tb.t.Errorf("the page asked other hosts: %q", elsewhere)
	}
	if len(tb.requests) == 0 {
		tb.t.Error("no request was seen: the test checks nothing")
	}
}
