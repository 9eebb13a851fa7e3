//go:build unix

package interop_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// guardScript starts the driver ($@) under the shell's own process id, and before that a guard,
// which waits on descriptor 3. A line there dismisses it. The end of the pipe means that the test
// has died. The guard then kills the driver, which may be frozen, or too busy to notice the end of
// its input. The guard is in the driver's process group, so no other process has its number by
// then.
const guardScript = `
(
	trap '' HUP INT QUIT TERM
	read -r _ <&3 && exit 0
	kill -KILL $$
) >/dev/null 2>&1 &
exec "$@" 3<&-
`

// guarded returns the command, not started yet, and the pipe that keeps its guard
// waiting. closeStarted closes what the started process has copies of.
func guarded(command []string) (cmd *exec.Cmd, guard *os.File, closeStarted func(), err error) {
	end, guard, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.Command("/bin/sh", append([]string{"-c", guardScript, "interop"}, command...)...)
	cmd.ExtraFiles = []*os.File{end}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, guard, func() { _ = end.Close() }, nil
}

// dismiss ends the guard of a driver that is gone.
func dismiss(guard *os.File) error {
	_, err := guard.WriteString("\n")
	if errors.Is(err, syscall.EPIPE) {
		err = nil // it was gone with the driver's group
	}
	return errors.Join(err, guard.Close())
}

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }

// alive reports whether the process runs, or waits to be reaped.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
