//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endGroup has the command's end by its context be that of all it started.
func endGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
