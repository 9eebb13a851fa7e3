package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		children[name]()
		return
	}
	zktest.Main(m, zktest.WithLeakCheck())
}

// childVariable makes a child of this test's own program, run again under one of these names for
// what would end it.
const childVariable = "ZKTEST_CHILD"

var children = map[string]func(){
	"waits":         func() { childServer(); select {} },
	"freezes":       func() { _ = childServer().Freeze(); fmt.Println("frozen"); select {} },
	"panics":        func() { childServer(); go panic("as told"); select {} },
	"parts":         func() { childEnsemble(); select {} },
	"hears":         receives,
	"says":          says,
	"panics within": func() { zktest.Main(runner(func() int { childShared(); panic("as told") })) },
	"leaks":         func() { zktest.Main(runner(leak), zktest.WithLeakCheck()) },
	"leaks not":     func() { zktest.Main(runner(func() int { childShared(); return 0 }), zktest.WithLeakCheck()) },
	"fails":         func() { zktest.Main(runner(func() int { return 3 })) },
	"misconfigured": func() {
		zktest.Main(runner(func() int { return 0 }), zktest.WithShared(zktest.WithSyncLimit(-1)))
	},
}

type runner func() int

func (r runner) Run() int { return r() }

func leak() int {
	go func() { select {} }()
	return 0
}

func childServer() *zktest.Server {
	server, err := zktest.Start(context.Background())
	return announced(server, err)
}

// childEnsemble starts an ensemble in namespaces, announces its first member and names
// the address at which clients reach that.
func childEnsemble() {
	e, err := zktest.StartEnsemble(context.Background(), 3, zktest.WithNamespaces(), zktest.WithLogLevel("ERROR"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	announced(e.Servers[0], nil)
	fmt.Println(e.Servers[0].Addr())
}

func childShared() {
	server, err := zktest.SharedServer(context.Background())
	announced(server, err)
}

// announced tells the parent about the server.
func announced(server *zktest.Server, err error) *zktest.Server {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	fmt.Println(server.Pid(), server.Dir())
	return server
}

// self returns a command that runs this program again, with these changes to its
// environment and arguments to go test.
func self(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	program := must.Get(os.Executable())(t)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func child(t testing.TB, name string) *exec.Cmd {
	t.Helper()
	return self(t, []string{childVariable + "=" + name})
}

// result runs a command and returns its exit code and what it wrote.
func result(t testing.TB, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestMainEndsWithTheRunsExitCode(t *testing.T) {
	t.Parallel()
	zktest.Shared(t) // for its rules about a missing server
	for _, c := range []struct {
		child  string
		code   int
		stderr string
	}{
		{"fails", 3, ""},
		{"leaks", 1, "found unexpected goroutines"},
		{"leaks not", 0, ""},
		{"misconfigured", 2, "zktest: sync limit -1: must be at least 1 tick"},
		{"panics within", 2, "panic: as told"},
	} {
		t.Run(c.child, func(t *testing.T) {
			code, stdout, stderr := result(t, child(t, c.child))
			if code != c.code || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit code %d, want %d; stderr, want %q:\n%s", code, c.code, c.stderr, stderr)
			}
			if stdout != "" {
				expectGone(t, strings.NewReader(stdout))
			}
		})
	}
}

// expectGone reads what announced wrote and waits until nothing of it is left.
func expectGone(t testing.TB, announcement io.Reader) {
	t.Helper()
	var pid int
	var dir string
	must.Get(fmt.Fscanln(announcement, &pid, &dir))(t)
	zktest.Eventually(t, soon, "the server's process is gone", func() bool { return !alive(pid) })
	zktest.Eventually(t, soon, "the server's directory is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestEnvironmentSaysWhatATestDoesWithoutServer(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "absent")
	for _, c := range []struct {
		name           string
		env            []string
		code           int
		stdout, stderr string
	}{
		{
			"none skips, and says so at the end",
			[]string{"ZK_TEST=none"},
			0, "--- SKIP: TestServerComesAndGoes", "zktest: SKIPPED 2 tests, and all examples, for want of a server: ZK_TEST=none\n",
		},
		{
			"unset skips where nothing is installed",
			[]string{"ZK_TEST=", "PATH=" + nowhere},
			0, "--- SKIP: TestServerComesAndGoes", "zktest: SKIPPED 2 tests, and all examples, for want of a server: not installed: no java in PATH",
		},
		{
			"required fails where nothing is installed",
			[]string{"ZK_TEST=required", "PATH=" + nowhere},
			2, "", "zktest: not installed: no java in PATH; install one (Debian: apt-get install default-jre-headless) or set JAVA_HOME\n",
		},
		{
			"what is set and wrong fails",
			[]string{"ZK_TEST=auto", "ZOOKEEPER_HOME=" + nowhere},
			2, "", "zktest: ZOOKEEPER_HOME=" + nowhere + ": no lib/zookeeper-*.jar there\n",
		},
		{
			"any other value fails",
			[]string{"ZK_TEST=no"},
			2, "", "zktest: ZK_TEST=\"no\": must be auto, required or none\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"-test.v", "-test.run=^(TestServerComesAndGoes|TestKilledSessionIsGone|ExampleStart)$"}
			code, stdout, stderr := result(t, self(t, append(c.env, "JAVA_HOME="), args...))
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit code %d, want %d\nstdout, want %q:\n%s\nstderr, want %q:\n%s",
					code, c.code, c.stdout, stdout, c.stderr, stderr)
			}
			if strings.Contains(stdout, "ExampleStart") {
				t.Errorf("the example runs without a server:\n%s", stdout)
			}
		})
	}
}
