// Package examples_test runs every example as its user does, against a real server. Each example
// has its own test on a server within the program, which also checks its output.
package examples_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// endless has the examples that run until they are interrupted, with the line after
// which that may be.
var endless = map[string]string{"connection-states": "the lock is ours", "price-service": "pear is 8"}

// elsewhere has those whose own tests run them on a real server.
var elsewhere = map[string]string{"quickstart": "examples/quickstart/main_test.go", "service": "examples/service/main_test.go"}

func TestEveryExampleRunsOnARealServer(t *testing.T) {
	server := zktest.Shared(t)
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) < 10 {
		t.Fatalf("found %d examples: %v", len(mains), err)
	}
	var build []string
	for _, main := range mains {
		name := filepath.Dir(main)
		if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || elsewhere[name] != "" {
			continue // a module of its own is tested as one
		}
		build = append(build, name)
	}
	dir := t.TempDir() + string(filepath.Separator)
	args := []string{"build", "-ldflags=-s -w", "-o", dir} // what a debugger needs takes half the time to link
	for _, name := range build {
		args = append(args, "./"+name)
	}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range build {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), dir+name, "-connect", server.Addr()+"/chroot-"+name)
			out, err := finish(cmd, endless[name])
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if out == "" || !strings.Contains(out, endless[name]) {
				t.Errorf("it printed %q, want something with %q in it", out, endless[name])
			}
		})
	}
}

// finish runs the command to its end, interrupts it after the line where one is given,
// and returns what it printed.
func finish(cmd *exec.Cmd, last string) (string, error) {
	if last == "" {
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	var printed bytes.Buffer
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		return "", err
	}
	go func() { _ = write.CloseWithError(cmd.Wait()) }() // ends the loop below
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), last) {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				return printed.String(), err
			}
		}
	}
	return printed.String(), lines.Err()
}
