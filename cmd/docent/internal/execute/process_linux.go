package execute

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process is CMD with its process group. It is prepared before docent has the lock, and started
// under the lock. Its leader stays unreaped until finish, so the group's number can't be reused.
type process struct {
	say      func(format string, args ...any)
	pid      int
	env      *os.File // to the starter
	fault    *os.File // from the starter
	guardian *guardian
	terminal *terminal
	before   []int // docent's children from before, if a shell has become docent

	leader  chan struct{}  // closed by watch, when CMD has ended
	gone    chan struct{}  // closed by watch, when the group is empty
	abandon chan struct{}  // closed by finish, if leftovers are ignored
	over    chan struct{}  // closed by finish, at its end
	watched sync.WaitGroup // for watch
	reapers sync.WaitGroup // for reapLoop
	reaping sync.Mutex     // held to reap strays, and to look at them
	said    bool           // that there are leftovers; watch's own
}

// An endOfCommand is how CMD ended.
type endOfCommand struct {
	status  syscall.WaitStatus
	guarded time.Time // when the guard killed the group; zero if it did not
	strays  []string  // processes that left the group and live on
}

// notExecutableError is the error of a CMD that the system refuses to execute.
type notExecutableError struct{ errno unix.Errno }

func (e notExecutableError) Error() string { return e.errno.Error() }

// prepare starts the starter and the guard. The calling goroutine must be locked to its thread, and
// stay so until finish has returned: the kernel kills the leader when that thread ends.
func prepare(path string, argv []string, files []*os.File, guarded bool, say func(string, ...any)) (*process, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	p := &process{
		say: say, leader: make(chan struct{}), gone: make(chan struct{}), abandon: make(chan struct{}), over: make(chan struct{}),
		terminal: terminalOf(files),
	}
	p.before, _ = children()
	if err := p.launch(path, argv, files); err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	var err error
	if guarded {
		p.guardian, err = newGuardian(p.pid, say)
	}
	p.watched.Go(p.watch)
	p.reapers.Go(p.reapLoop)
	if err != nil {
		p.finish()
		return nil, err
	}
	return p, nil
}

// launch starts the starter.
func (p *process) launch(path string, argv []string, files []*os.File) error {
	env, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer env.Close()
	fault, theirs, err := os.Pipe()
	if err != nil {
		ours.Close()
		return err
	}
	defer theirs.Close()
	started, err := os.StartProcess("/proc/self/exe", append([]string{"docent", starterCommand, path}, argv...), &os.ProcAttr{
		Env: []string{}, Files: append(append([]*os.File{}, files...), env, theirs),
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		ours.Close()
		fault.Close()
		return err
	}
	p.env, p.fault, p.pid = ours, fault, started.Pid
	_ = started.Release() // finish reaps it
	return nil
}

// start has the starter become CMD. It returns notExecutableError if the system refuses.
func (p *process) start(env []string) error {
	p.terminal.give(p.pid)
	err := writeEnvironment(p.env, env)
	p.env.Close()
	if err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	errno, err := readFault(p.fault)
	if err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	if errno != 0 {
		return notExecutableError{errno}
	}
	return nil
}

// cldStopped is waitid's code for a process that was stopped. Package unix lacks it.
const cldStopped = 5

// watch waits for the end of CMD and then of its group. prepare starts it, finish waits for it.
func (p *process) watch() {
	defer close(p.gone)
	var lastStop time.Time
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || info.Code != cldStopped {
			break
		}
		_ = unix.Waitid(unix.P_PID, p.pid, &info, unix.WSTOPPED|unix.WNOHANG, nil) // consumes the stop
		if time.Since(lastStop) < time.Second {
			<-time.After(time.Second) // it stops again and again
		}
		lastStop = time.Now()
		p.resume()
	}
	close(p.leader)
	p.awaitGroup()
}

// resume continues a CMD that was stopped, because a holder that is stopped blocks all waiters.
func (p *process) resume() {
	if p.terminal.giveBack(p.pid) {
		p.say("the command gets the terminal")
	} else {
		p.say("the command was stopped while it holds a lock: it is continued")
	}
	p.Signal(syscall.SIGCONT)
}

// Signal is part of [Group].
func (p *process) Signal(sig syscall.Signal) { _ = unix.Kill(-p.pid, sig) } // an empty group is gone already

// Leader is part of [Group].
func (p *process) Leader() <-chan struct{} { return p.leader }

// Gone is part of [Group].
func (p *process) Gone() <-chan struct{} { return p.gone }

// Guarded is part of [Group].
func (p *process) Guarded(kill time.Time) {
	if p.guardian != nil {
		p.guardian.kill(kill)
	}
}

// finish waits for the group, or abandons what CMD left behind, and reaps the leader. By then the guard
// knows that the group is gone. If CMD was not started, finish ends the starter.
func (p *process) finish() endOfCommand {
	p.env.Close()
	<-p.leader
	close(p.abandon)
	p.watched.Wait()
	p.fault.Close()
	p.terminal.take()
	var end endOfCommand
	if p.guardian != nil {
		end.guarded = p.guardian.finish()
	}
	for {
		_, err := syscall.Wait4(p.pid, &end.status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	close(p.over)
	p.reapers.Wait()
	p.reapStrays()
	strays, _ := children()
	left, _ := processesOf(slices.DeleteFunc(strays, func(pid int) bool { return slices.Contains(p.before, pid) }))
	end.strays = describe(left, running)
	return end
}
