//go:build unix

package demo_test

import (
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// Ctrl-C ends the process, and nothing of it is left: no process, no port, no complaint.
func TestDemo_ends_at_an_interrupt(t *testing.T) {
	t.Parallel()
	cmd := apptest.Program(os.Args[0], "demo", "--listen", "127.0.0.1:0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a group of its own, to see who is left
	var out, errs apptest.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // it may have ended
	zktest.Eventually(t, 20*time.Second, "the page's URL", func() bool { return strings.Contains(out.String(), "\n") })
	at := must.Get(url.Parse(strings.TrimSpace(out.String())))(t)
	zktest.Eventually(t, 30*time.Second, "the workers", func() bool { return strings.Contains(errs.String(), "holds /demo/accounts") })
	must.OK(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil || cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("%v, messages %s", err, errs.String())
	}
	if err := syscall.Kill(-cmd.Process.Pid, 0); err != syscall.ESRCH {
		t.Errorf("a process of the demo's group is left: %v", err)
	}
	if conn, err := net.DialTimeout("tcp", at.Host, 5*time.Second); err == nil {
		_ = conn.Close()
		t.Errorf("the demo's port %s still listens", at.Host)
	}
	for line := range strings.SplitSeq(errs.String(), "\n") {
		if strings.HasPrefix(line, "docent:") || strings.Contains(line, "panic") {
			t.Errorf("a complaint: %s", line)
		}
	}
}
