package demo_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/demo"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// The demo runs without a network, finds its deadlock, and ends when it is interrupted. It leaves the
// ensemble of other commands alone.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out, errs apptest.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &errs, Env: []string{"DOCENT_CONNECT=zk1:2181"}} // not asked
	ctx, interrupt := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- app.Main(ctx, []string{"demo", "--listen", "127.0.0.1:0"}, demo.New) }() // the test waits for it
	zktest.Eventually(t, 20*time.Second, "the page's URL", func() bool { return strings.Contains(out.String(), "\n") })
	base, token, _ := strings.Cut(strings.TrimSpace(out.String()), "/#token=")
	zktest.Eventually(t, 30*time.Second, "the deadlock", func() bool {
		return strings.Contains(get(t, base+"/metrics", token), "docent_lock_deadlocks 1\n")
	})
	interrupt()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d: %s", got, errs.String())
	}
}

func get(t *testing.T, url, token string) string {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	reply := must.Get(http.DefaultClient.Do(r))(t)
	defer func() { _ = reply.Body.Close() }()
	var text bytes.Buffer
	must.Get(text.ReadFrom(reply.Body))(t)
	return text.String()
}

// The demo never meets a real ensemble, and its page is on loopback alone.
func TestDemo_refuses(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"an ensemble":         {"--connect", "zk1:2181", "demo"},
		"an address for all":  {"demo", "--listen", "0.0.0.0:0"},
		"an address, no port": {"demo", "--listen", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs apptest.Buffer
			app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &errs}
			if code := app.Main(t.Context(), args, demo.New); code != cli.CodeUsage || out.String() != "" {
				t.Errorf("exit code %d, output %q, %s", code, out.String(), errs.String())
			}
		})
	}
}
