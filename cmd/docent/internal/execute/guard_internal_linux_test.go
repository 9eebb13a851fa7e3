package execute //nolint:testpackage // no program could stop a guard at these moments

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// guarded starts a process group that sleeps, and its guard.
func guarded(t *testing.T) (ended <-chan error, g *guardian) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }() // ends with the process
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	g, err := newGuardian(cmd.Process.Pid, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	return end, g
}

// expire has the latest message's time limit pass.
func (g *guardian) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.in.SetWriteDeadline(time.Unix(1, 0))
	g.told = time.Now().Add(-time.Hour)
}

// The guard hears the end of a run whose last message to it was long ago, and answers.
func TestGuardian_finishes_a_long_run(t *testing.T) {
	t.Parallel()
	ended, g := guarded(t)
	g.kill(time.Now())
	<-ended
	g.expire()
	if g.finish().IsZero() {
		t.Error("the guard's answer, that it has killed the group, is missing")
	}
}

// A guard that is stopped is replaced at the next message, before its pipe is full.
func TestGuardian_replaces_a_guard_that_is_stopped(t *testing.T) {
	t.Parallel()
	_, g := guarded(t)
	first := g.pid()
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	const messages = 1000 // fewer than the pipe takes
	for range messages {
		g.kill(time.Now().Add(time.Hour))
		if g.pid() != first {
			break
		}
		g.expire()
		<-time.After(time.Millisecond)
	}
	if g.pid() == first {
		t.Errorf("the guard is the same after %d messages", messages)
	}
	if !g.finish().IsZero() {
		t.Error("a guard has killed the group")
	}
}
