//go:build unix

package zktest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// guardScript starts the server ($@) under the shell's own process id, and before that a guard in
// the background, which waits on descriptor 3. A line there means that the server is gone and
// dismisses the guard. The end of the pipe means that the process at its other end is: the guard
// then kills the server and removes its files ($root).
//
// The guard is in the server's process group. While a group has a member, the system does not give
// its number to another process, so the guard can't kill another one. Nor must it die with the
// group, to which the system sends SIGHUP when the starter dies while the server is frozen.
const guardScript = `
(
	trap '' HUP INT QUIT TERM
	read -r _ <&3 && exit 0
	kill -KILL $$
	rm -rf -- "${root:?}" || { sleep 1; rm -rf -- "${root:?}"; } # it dies in its own time
) >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
`

// A process is one run of a server's Java process.
type process struct {
	cmd   *exec.Cmd
	guard *os.File      // the pipe on which the guard waits; written and closed by waitLoop
	done  chan struct{} // closed by waitLoop, when the process is gone and reaped
	state string        // how it ended; set before done is closed
}

// startProcess runs the command line in the layout's directory, its output
// added to the layout's log file.
func startProcess(l layout, command []string) (*process, error) {
	log, err := os.OpenFile(l.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	end, guard, err := os.Pipe() // closed on exec: no other child keeps it open
	if err != nil {
		return nil, err
	}
	defer end.Close()

	cmd := exec.Command("/bin/sh", append([]string{"-c", guardScript, "zktest"}, command...)...)
	cmd.Dir = l.dir
	// Java decodes the names of files by the locale.
	cmd.Env = append(os.Environ(), "root="+l.root, "LC_ALL=C.UTF-8")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{end}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, guard.Close())
	}
	p := &process{cmd: cmd, guard: guard, done: make(chan struct{})}
	go p.waitLoop()
	return p, nil
}

// waitLoop is started by startProcess, ends with the process, and is waited for
// by whoever ends it.
func (p *process) waitLoop() {
	err := p.cmd.Wait()
	p.state = p.cmd.ProcessState.String()
	if p.cmd.ProcessState == nil {
		p.state = fmt.Sprint("lost: ", err)
	}
	// Neither can fail in a way that matters: at worst the guard finds the end
	// of the pipe and nothing left to kill.
	_, _ = p.guard.WriteString("\n")
	_ = p.guard.Close()
	close(p.done)
}

// gone reports whether the process has ended and been reaped.
func (p *process) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends a signal to the process alone; its guard must not be frozen with
// it. A process that is gone is ErrStopped.
func (p *process) signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return ErrStopped
	}
	return err
}

// freeze returns when every thread has stopped: on a busy machine the last one may answer requests
// for a while after the signal was sent.
func (p *process) freeze() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if !poll(freezeLimit, func() bool { return p.gone() || allStopped(p.pid()) }) {
		return fmt.Errorf("zktest: process %d: not frozen within %v of SIGSTOP", p.pid(), freezeLimit)
	}
	return nil
}

func (p *process) thaw() error { return p.signal(syscall.SIGCONT) }
func (p *process) kill() error { return p.signal(syscall.SIGKILL) }

// freezeLimit is far above what the system takes to stop all threads.
const freezeLimit = 10 * time.Second

// allStopped reports whether all threads of the process are stopped. Where /proc
// can't tell it takes the signal's word.
func allStopped(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return true
	}
	for _, stat := range stats {
		line, err := os.ReadFile(stat)
		if err != nil {
			continue // the thread has ended
		}
		// The state follows the command's name, which is in parentheses.
		if i := bytes.LastIndexByte(line, ')'); i >= 0 && !bytes.HasPrefix(line[i:], []byte(") T")) {
			return false
		}
	}
	return true
}

// terminate asks the process to end. A frozen one has to be thawed to hear it.
func (p *process) terminate() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.signal(syscall.SIGCONT)
}
