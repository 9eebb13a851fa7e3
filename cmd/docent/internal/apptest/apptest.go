// Package apptest has what the tests of several commands share.
package apptest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

// ProgramVariable is the environment variable that makes the test binary docent itself.
const ProgramVariable = "DOCENT_TEST_PROGRAM"

// Main calls tests, which runs the tests. In a process of [Program] it runs docent with these commands
// instead.
func Main(tests func(), commands ...func(*cli.App) *cobra.Command) {
	if os.Getenv(ProgramVariable) != "" {
		app := &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
		os.Exit(app.Main(context.Background(), os.Args[1:], commands...))
	}
	// The loop that os/signal starts at its first use must not belong to a test's bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	signal.Stop(signals)
	tests()
}

// Missing skips the test, because the machine lacks something. With ZK_TEST=required, as on a build
// server, the test fails.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("ZK_TEST") == "required" {
		t.Fatal(what + ", and ZK_TEST=required")
	}
	t.Skip("SKIPPED, NOT TESTED: " + what)
}

// Program returns a process of docent, or of a shell that calls it. name is os.Args[0] or the shell's.
func Program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), ProgramVariable+"=1", "TERM=xterm-256color", "LANG=C.UTF-8")
	return cmd
}

// Client returns a client that is connected, until the test has ended.
func Client(t testing.TB, addr string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(addr, opts...))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	must.OK(t, c.AwaitConnected(t.Context()))
	return c
}

// A Buffer may be read while it is written.
type Buffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
