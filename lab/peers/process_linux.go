package peers

import (
	"os"
	"os/exec"
	"syscall"
)

// Detach has the process killed when this one dies, also while it is stopped, and keeps the terminal's
// interrupt from it.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Stop stops the process until Continue.
func Stop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Continue has the process go on.
func Continue(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
