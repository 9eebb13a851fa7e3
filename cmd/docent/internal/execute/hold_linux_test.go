package execute_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/form/formtest"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkproxy"
)

// hold starts "docent hold" with the arguments, with a pipe as its standard input.
func hold(t *testing.T, addr string, args ...string) *program {
	t.Helper()
	cmd := apptest.Program(os.Args[0], append([]string{"hold", "--connect", addr}, args...)...)
	in := must.Get(cmd.StdinPipe())(t)
	h := launch(t, cmd)
	h.in = in
	return h
}

// held waits until it says that it holds the lock, and returns the fence.
func (p *program) held(t *testing.T) string {
	t.Helper()
	eventually(t, "the lock is held", func() bool { return strings.Contains(p.out.String(), "\n") })
	var fence, path string
	if _, err := fmt.Sscanf(p.out.String(), "held %s %s", &fence, &path); err != nil {
		t.Fatalf("%v: %q", err, p.out.String())
	}
	return fence
}

// contenders returns the lock's contenders.
func contenders(t *testing.T, c *framework.Client, path string) []inspect.Contender {
	t.Helper()
	l := must.Get(inspect.Read(t.Context(), c, path))(t)
	return l.Contenders
}

// Each kind is held, excludes as it should, and is released at the end of the input.
func TestHold(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	for _, test := range []struct {
		flags []string
		other int // exit code of another one with -n; -1 for a kind without -n
	}{
		{nil, 123},
		{[]string{"--read"}, 0},
		{[]string{"--write"}, 123},
		{[]string{"--exclusive"}, 123},
		{[]string{"--semaphore=2"}, 0},
		{[]string{"--semaphore=1"}, 123},
		{[]string{"--leader"}, -1},
	} {
		t.Run(strings.Join(test.flags, ""), func(t *testing.T) {
			t.Parallel()
			path := "/hold/" + strings.NewReplacer("-", "", "=", "").Replace("k"+strings.Join(test.flags, ""))
			h := hold(t, addr, append(test.flags, path)...)
			fence := h.held(t)
			all := contenders(t, c, path)
			if len(all) != 1 || all[0].State != inspect.Holds || fmt.Sprint(all[0].Czxid) != fence {
				t.Errorf("contenders %+v, fence %s", all, fence)
			}
			if len(all) == 1 && (all[0].Meta == nil || all[0].Meta.Owner != "docent hold") {
				t.Errorf("metadata %+v, want the owner docent hold", all[0].Meta)
			}
			if test.other >= 0 {
				other := hold(t, addr, append(test.flags, "-n", path)...)
				_ = other.in.Close()
				other.ends(t, "another one with -n", test.other)
			}
			must.OK(t, h.in.Close())
			if h.ends(t, "it", 0); h.err.String() != "" {
				t.Errorf("it says %s", h.err.String())
			}
			if all := contenders(t, c, path); len(all) > 0 {
				t.Errorf("after the end: %+v", all)
			}
		})
	}
}

// A signal ends the wait, and releases the lock.
func TestHold_ends_at_a_signal(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			path := fmt.Sprintf("/signal/%d", sig)
			h := hold(t, addr, path)
			h.held(t)
			waiter := hold(t, addr, "-v", path)
			eventually(t, "it waits", func() bool { return strings.Contains(waiter.err.String(), "waiting behind") })
			for _, one := range []*program{waiter, h} {
				must.OK(t, one.Process.Signal(sig))
				one.ends(t, "it", 128+int(sig))
			}
			if all := contenders(t, c, path); len(all) > 0 || waiter.out.String() != "" {
				t.Errorf("contenders %+v; the waiter wrote %q", all, waiter.out.String())
			}
		})
	}
}

// A deleted znode is a loss. So is an outage, but docent exits before its end: the lock's znode is there
// until the session ends, which is when another client can have it.
func TestHold_of_a_lock_that_is_lost(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		h := hold(t, addr, "/lost/deleted")
		h.held(t)
		must.OK(t, c.Delete(t.Context(), contenders(t, c, "/lost/deleted")[0].Znode))
		if h.ends(t, "it", 121); !strings.Contains(h.err.String(), "node_deleted") {
			t.Errorf("it says %s", h.err.String())
		}
	})
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		proxy := zkproxy.Run(t, addr)
		h := hold(t, proxy.Addr(), "--session-timeout", "8s", "/lost/silence", "/lost/other")
		h.held(t)
		proxy.Blackhole(zkproxy.ToServer)
		if h.ends(t, "it", 121); !strings.Contains(h.err.String(), "lease_deadline") {
			t.Errorf("it says %s", h.err.String())
		}
		for _, path := range []string{"/lost/silence", "/lost/other"} {
			if all := contenders(t, c, path); len(all) != 1 {
				t.Errorf("%s: %d contenders when docent has exited, want the znode of its session", path, len(all))
			}
		}
	})
}

// With /dev/null, or no standard input at all, only a signal releases the lock.
func TestHold_without_an_input(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for name, redirection := range map[string]string{"null": "</dev/null", "closed": "<&-"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := fmt.Sprintf(`exec %s hold --connect %s /input/%s %s >%s/out`, quoted(os.Args[0]), addr, name, redirection, quoted(dir))
			h := launch(t, apptest.Program("sh", "-c", script))
			eventually(t, "the lock is held", func() bool { return strings.HasPrefix(contents(dir+"/out"), "held ") })
			run(t, addr, "-n", "/input/"+name, "--", "true").ends(t, "an exec", 123)
			must.OK(t, h.Process.Signal(syscall.SIGTERM))
			h.ends(t, "it", 143)
		})
	}
}

// In the background of a terminal docent must not read it: that would stop docent, and the lock would stay
// held by a process that does nothing.
func TestHold_in_the_background_of_a_terminal(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	out := tempFile(t)
	script := fmt.Sprintf(`set -m; %s hold --connect %s /background >%s & read line; kill %%1; wait %%1; echo "code $?"`, quoted(os.Args[0]), addr, quoted(out))
	terminal, output := startInTerminal(t, apptest.Program("bash", "-c", script))
	eventually(t, "the lock is held", func() bool { return strings.HasPrefix(contents(out), "held ") })
	eventually(t, "docent says what releases it", func() bool { return strings.Contains(output(), "only a signal releases the lock") })
	must.Get(terminal.WriteString("\n"))(t)
	eventually(t, "docent ends at the signal", func() bool { return strings.Contains(output(), "code 143") })
}

// What docent can't do: exit codes, and a script that has closed docent's output.
func TestHold_fails(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	hold(t, addr, "/fails/held").held(t)
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"no path":          {nil, 125},
		"no znode's path":  {[]string{"locks"}, 125},
		"two kinds":        {[]string{"--read", "--write", "/a"}, 125},
		"too long a grace": {[]string{"--grace", "14s", "/a"}, 125},
		"a command":        {[]string{"/a", "--", "true"}, 125},
		"no server":        {[]string{"--connect", "127.0.0.1:1", "--timeout", "200ms", "/a"}, 125},
		"held":             {[]string{"-n", "/fails/held"}, 123},
		"held, own code":   {[]string{"-n", "-E", "9", "/fails/held"}, 9},
	} {
		h := hold(t, addr, test.args...)
		if h.ends(t, name, test.code); h.out.String() != "" || h.err.String() == "" {
			t.Errorf("%s: it writes %q, %q", name, h.out.String(), h.err.String())
		}
	}
	cmd := apptest.Program(os.Args[0], "hold", "--connect", addr, "/fails/output")
	reader, writer := must.Get2(os.Pipe())(t)
	_ = reader.Close()
	cmd.Stdout = writer
	must.Get(cmd.StdinPipe())(t)
	_ = cmd.Run() // the code says it
	_ = writer.Close()
	if code := cmd.ProcessState.ExitCode(); code != 125 || len(contenders(t, c, "/fails/output")) > 0 {
		t.Errorf("nobody reads: exit code %d, want 125", code)
	}
}

// With -o json the line is a document of the schema.
func TestHold_as_JSON(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	h := hold(t, addr, "-o", "json", "/json/b", "/json/a")
	_ = h.in.Close()
	h.ends(t, "it", 0)
	formtest.Check(t, "held", h.out.String())
	if a, b := strings.Index(h.out.String(), `"/json/a"`), strings.Index(h.out.String(), `"/json/b"`); a < 0 || b < a {
		t.Errorf("paths of %s", h.out.String())
	}
}
