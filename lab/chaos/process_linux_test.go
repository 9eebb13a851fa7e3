package chaos_test

import (
	"os"
	"os/exec"
	"syscall"
)

// detach has the process killed when this one dies, also while it is stopped, and keeps
// the terminal's interrupt from it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func stop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func cont(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
