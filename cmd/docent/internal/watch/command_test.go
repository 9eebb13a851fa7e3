package watch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/cmd/docent/internal/form/formtest"
	"github.com/docent-go/docent/cmd/docent/internal/watch"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// started runs watch on the server in this process. stop ends it and returns the exit code.
func started(t *testing.T, server *zkserver.Server, args ...string) (out, errs *apptest.Buffer, stop func() int) {
	t.Helper()
	out, errs = &apptest.Buffer{}, &apptest.Buffer{}
	app := &cli.App{In: strings.NewReader(""), Out: out, Err: errs, Options: []framework.Option{framework.WithDialer(server.Dial)}}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { // stop waits for it
		code <- app.Main(ctx, append([]string{"watch", "--connect", server.Addr()}, args...), watch.New)
	}()
	return out, errs, func() int { cancel(); return <-code }
}

func TestWatch_writes_lines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithSeed(1))...)
		c := apptest.Client(t, server.Addr(), framework.WithDialer(server.Dial))
		file := filepath.Join(t.TempDir(), "trace.json")
		out, errs, stop := started(t, server, "/locks", "/jobs", "-o", "jsonl", "--trace", file)
		m := must.Get(lock.NewMutex(c, "/locks/report"))(t)
		ctx := lock.ContextWithOwner(t.Context(), lock.NewOwner("night\x1bly"))
		<-time.After(time.Second) // virtual
		held := must.Get(m.Lock(ctx))(t)
		<-time.After(7 * time.Second) // virtual
		must.OK(t, held.Release(ctx))
		<-time.After(time.Second) // virtual
		if code := stop(); code != cli.CodeInterrupted || errs.String() != "" {
			t.Errorf("exit code %d, %q", code, errs.String())
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			var e form.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Schema != form.Version {
				t.Fatalf("%v: %s", err, line)
			}
			formtest.Check(t, "event", line)
			got = append(got, e.Event+" "+e.Path)
			if e.Event == "released" && (e.Held == nil || *e.Held < 6 || *e.Held > 8) {
				t.Errorf("not held for 7 s: %s", line)
			}
		}
		text := strings.Join(got, ", ")
		if !strings.HasSuffix(text, "granted /locks/report, released /locks/report") ||
			!strings.Contains(text, "live /locks") || !strings.Contains(text, "live /jobs") || len(got) != 4 {
			t.Errorf("got %s", text)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("a terminal would obey it: %q", out.String())
		}
		if trace, err := os.ReadFile(file); err != nil || strings.Count(string(trace), `"ph":"X"`) != 1 {
			t.Errorf("not one hold: %s, %v", trace, err)
		}
	})
}

// The end of watch does not hide that the trace could not be written.
func TestWatch_says_if_its_trace_is_not_whole(t *testing.T) {
	t.Parallel()
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		apptest.Missing(t, "no "+full)
	}
	synctest.Test(t, func(t *testing.T) {
		_, errs, stop := started(t, zkserver.Run(t, zkenv.DrawVersion(t)...), "/locks", "--trace", full)
		<-time.After(time.Second) // virtual
		if code := stop(); code != cli.CodeInterrupted || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("exit code %d: %q", code, errs.String())
		}
	})
}

func TestWatch_refuses(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no path":                {"watch", "--connect", "127.0.0.1:1", "locks"},
		"a path below another":   {"watch", "--connect", "127.0.0.1:1", "/locks/a", "/locks"},
		"a path twice":           {"watch", "--connect", "127.0.0.1:1", "/locks", "/locks"},
		"a path below the root":  {"watch", "--connect", "127.0.0.1:1", "/locks", "/"},
		"a document":             {"watch", "--connect", "127.0.0.1:1", "-o", "json"},
		"names":                  {"watch", "--connect", "127.0.0.1:1", "-o", "name"},
		"a trace in a directory": {"watch", "--connect", "127.0.0.1:1", "--trace", t.TempDir()},
		"no ensemble":            {"watch"},
	} {
		var out, errs apptest.Buffer
		app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &errs}
		if code := app.Main(t.Context(), args, watch.New); code != cli.CodeUsage || out.String() != "" {
			t.Errorf("%s: exit code %d, %q, %s", name, code, out.String(), errs.String())
		}
	}
}

func TestWatch_fails_without_permission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithSeed(1))...)
		owner := apptest.Client(t, server.Addr(), framework.WithDialer(server.Dial), framework.WithAuth("digest", []byte("a:b")))
		must.Get(owner.Create(t.Context(), "/secret", nil, framework.WithACL(acl.Creator()...)))(t)
		_, errs, stop := started(t, server, "/secret")
		<-time.After(5 * time.Second) // virtual
		if !strings.Contains(errs.String(), "/secret") {
			t.Errorf("nothing said: %q", errs.String())
		}
		if code := stop(); code != cli.CodeFailed {
			t.Errorf("exit code %d", code)
		}
	})
}

// What --max leaves out is said once, on standard error.
func TestWatch_says_what_it_leaves_out(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t, zkenv.DrawVersion(t)...)
		c := apptest.Client(t, server.Addr(), framework.WithDialer(server.Dial))
		for i := range 10 {
			must.Get(c.Create(t.Context(), fmt.Sprintf("/app-%d", i), nil))(t)
		}
		_, errs, stop := started(t, server, "--max", "4")
		<-time.After(10 * time.Second)
		stop()
		if got := strings.Count(errs.String(), "7 znodes left out"); got != 1 {
			t.Errorf("said %d times: %q", got, errs.String())
		}
	})
}
