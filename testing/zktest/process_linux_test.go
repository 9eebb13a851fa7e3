package zktest_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			announcement, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if c.ready != "" {
				if line, err := lines.ReadString('\n'); line != c.ready {
					t.Fatalf("child says %q, %v; want %q", line, err, c.ready)
				}
			}
			if c.child != "panics" {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
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
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Duration(i) * 4 * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		zktest.Eventually(t, soon, "no process of the server's is left", func() bool { return processesOf(t, tmp) == 0 })
	}
}

// processesOf counts the processes with text in their command line.
func processesOf(t testing.TB, text string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, soon, "the guard has left with the server", func() bool {
		return processesOf(t, server.Dir()) == 0
	})
}
