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

// A process is CMD with all that it starts. It is prepared before docent has the lock, and started
// under the lock. CMD leads a process group, and stays unreaped until finish, so that the group's number
// can't be reused.
type process struct {
	say      func(format string, args ...any)
	pid      int
	env      *os.File // to the starter
	fault    *os.File // from the starter
	guardian *guardian
	terminal *terminal
	before   []int // docent's children from before, if a shell has become docent

	leader  chan struct{}  // closed by watch, when CMD has ended
	gone    chan struct{}  // closed by watch, when nothing that CMD started is left
	abandon chan struct{}  // closed by finish, if leftovers are ignored
	over    chan struct{}  // closed by finish, at its end
	watched sync.WaitGroup // for watch
	reapers sync.WaitGroup // for reapLoop
	reaping sync.Mutex     // held to reap strays, and to look at them
	said    bool           // that there are leftovers; watch's own
	warned  map[int]bool   // that the process refuses signals; reapLoop's own
}

// An endOfCommand is how CMD ended.
type endOfCommand struct {
	status  syscall.WaitStatus
	guarded time.Time // when the guard killed the group; zero if it did not
	left    []string  // processes that run on
}

// notExecutableError is the error of a CMD that the system refuses to execute.
type notExecutableError struct{ errno unix.Errno }

func (e notExecutableError) Error() string { return e.errno.Error() }

// prepare starts the starter. The calling goroutine must be locked to its thread, and stay so until finish
// has returned: the kernel kills the leader when that thread ends.
func prepare(path string, argv []string, files []*os.File, g *guardian, say func(string, ...any)) (*process, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	p := &process{
		say: say, leader: make(chan struct{}), gone: make(chan struct{}), abandon: make(chan struct{}), over: make(chan struct{}),
		terminal: terminalOf(files), guardian: g, warned: make(map[int]bool),
	}
	p.before, _ = children(os.Getpid())
	if err := p.launch(path, argv, files); err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	p.watched.Go(p.watch)
	p.reapers.Go(p.reapLoop)
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

// watch waits for the end of CMD and then of all that CMD has started. prepare starts it, finish waits for it.
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
	p.awaitAll()
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

// Signal is part of [Program].
func (p *process) Signal(sig syscall.Signal) { _ = unix.Kill(-p.pid, sig) } // an empty group is gone already

// SignalAll is part of [Program]. It needs no free file for CMD's own group.
func (p *process) SignalAll(sig syscall.Signal) []string {
	p.Signal(sig)
	_, refused := signalAll(sig, func() ([]processEntry, error) {
		list, err := p.running()
		return slices.DeleteFunc(list, func(e processEntry) bool {
			return e.group == p.pid && !errors.Is(unix.Kill(e.pid, 0), unix.EPERM)
		}), err
	})
	return describe(refused)
}

// running returns CMD and what it has started, but what has ended.
func (p *process) running() ([]processEntry, error) { return descendants(os.Getpid(), p.before) }

// Leader is part of [Program].
func (p *process) Leader() <-chan struct{} { return p.leader }

// Gone is part of [Program].
func (p *process) Gone() <-chan struct{} { return p.gone }

// Guarded is part of [Program].
func (p *process) Guarded(kill time.Time) { p.guardian.kill(kill, p.say) }

// finish waits until nothing that CMD started is left, or abandons what CMD left behind, and reaps the
// leader. By then the guard knows. If CMD was not started, finish ends the starter.
func (p *process) finish() endOfCommand {
	p.env.Close()
	<-p.leader
	close(p.abandon)
	p.watched.Wait()
	p.fault.Close()
	p.terminal.take()
	end := endOfCommand{guarded: p.guardian.finish(p.say)}
	end.status = reap(p.pid)
	close(p.over)
	p.reapers.Wait()
	p.reapStrays()
	left, _ := p.running()
	end.left = describe(left)
	return end
}
