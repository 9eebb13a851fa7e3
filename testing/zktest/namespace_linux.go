package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A namespace is a network namespace: that of this process if it has no file.
type namespace struct {
	file *os.File // keeps the namespace as long as it is open, even without a process in it
}

// setUp is run in a new namespace and ends with its input. The system keeps a namespace as long as it
// has a connection whose process was killed and whose other side does not answer. By default that is
// up to 100 s if the other side is gone, too; with 3 retries it is 3 s. Where the setting can't be
// written, a namespace lasts longer.
const setUp = "echo 3 2>/dev/null >/proc/sys/net/ipv4/tcp_orphan_retries; exec cat"

// newNamespace makes one with nothing in it. The process that it is made with is gone when
// newNamespace returns.
func newNamespace() (namespace, error) {
	cmd := exec.Command("sh", "-c", setUp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return namespace{}, err
	}
	if err := cmd.Start(); err != nil {
		return namespace{}, fmt.Errorf("a process with its own network: %w", err)
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid))
	if err := errors.Join(err, stdin.Close(), cmd.Wait()); err != nil {
		return namespace{}, err
	}
	return namespace{file}, nil
}

// path names the namespace to other processes.
func (n namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// enter returns what runs a command line in the namespace, in the same process.
func (n namespace) enter() []string {
	if n.file == nil {
		return nil
	}
	return []string{"nsenter", "--net=" + n.path(), "--"}
}

func (n namespace) close() error { return n.file.Close() }

// toolLimit bounds a run of ip or tc, which takes milliseconds.
const toolLimit = 20 * time.Second

// batch has ip or tc do some lines' work in the namespace, up to the first that fails.
func (n namespace) batch(tool string, lines ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), toolLimit)
	defer cancel()
	command := append(n.enter(), tool, "-batch", "-")
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
