package zktest_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestNoServerOutlivesItsStarter(t *testing.T) {
	t.Parallel()
	zktest.Shared(t) // for its rules about a missing server
	for _, c := range []struct {
		name, child string
		ready       string // what the child says, after its announcement, once it may be killed
	}{
		{name: "killed", child: "waits"},
		{name: "killed with its server frozen", child: "freezes", ready: "frozen\n"},
		{name: "panicking", child: "panics"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := child(t, c.child)
			out := must.Get(cmd.StdoutPipe())(t)
			must.OK(t, cmd.Start())
			lines := bufio.NewReader(out)
			announcement := must.Get(lines.ReadString('\n'))(t)
			if c.ready != "" {
				if line, err := lines.ReadString('\n'); line != c.ready {
					t.Fatalf("child says %q, %v; want %q", line, err, c.ready)
				}
			}
			if c.child != "panics" {
				must.OK(t, cmd.Process.Kill())
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the child ended well; want it killed")
			}
			expectGone(t, strings.NewReader(announcement))
		})
	}
}

// A starter may die at any point of a start, also between the server's fork and
// whatever it would do next.
func TestNoServerOutlivesAStartCutShort(t *testing.T) {
	t.Parallel()
	zktest.Shared(t)
	for i := range 8 {
		tmp := t.TempDir() // in the server's command line
		cmd := child(t, "waits")
		cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
		must.OK(t, cmd.Start())
		<-time.After(time.Duration(i) * 4 * time.Millisecond)
		must.OK(t, cmd.Process.Kill())
		_ = cmd.Wait()
		zktest.Eventually(t, soon, "no process of the server's is left", func() bool { return processesOf(t, tmp) == 0 })
	}
}

// processesOf counts the processes with text in their command line.
func processesOf(t testing.TB, text string) int {
	t.Helper()
	files := must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	if len(files) == 0 {
		t.Fatal("no /proc: can't tell which processes run")
	}
	n := 0
	for _, name := range files {
		if command, err := os.ReadFile(name); err == nil && strings.Contains(string(command), text) {
			n++
		}
	}
	return n
}

func TestStopFreesTheGuard(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	if got := processesOf(t, server.Dir()); got != 2 {
		t.Fatalf("%d processes of a running server; want it and its guard", got)
	}
	must.OK(t, server.Stop(t.Context()))
	zktest.Eventually(t, soon, "the guard has left with the server", func() bool {
		return processesOf(t, server.Dir()) == 0
	})
}

// TestTemporaryDirectoryOfAnyName: a child whose directory for temporary files has any name, in any
// locale, starts a server that has all its files there.
func TestTemporaryDirectoryOfAnyName(t *testing.T) {
	t.Parallel()
	zktest.Shared(t) // for its rules about a missing server
	tmp := filepath.Join(t.TempDir(), `ö €𝄞\u00e4\t`)
	must.OK(t, os.Mkdir(tmp, 0o700))
	cmd := child(t, "waits")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp, "LC_ALL=C")
	out := must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	defer cmd.Process.Kill()
	time.AfterFunc(soon, func() { _ = cmd.Process.Kill() }) // it used to hang
	announcement := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	_, dir, _ := strings.Cut(strings.TrimSuffix(announcement, "\n"), " ")
	if !strings.HasPrefix(dir, tmp) {
		t.Fatalf("the server is in %s, want %s", dir, tmp)
	}
	if files := must.Get(os.ReadDir(filepath.Join(dir, "data")))(t); len(files) == 0 {
		t.Errorf("no files in %s", dir)
	}
}
