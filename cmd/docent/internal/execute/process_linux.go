package execute

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
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
	cgroup   *cgroup
	before   []int // docent's children from before, if a shell has become docent

	leader  chan struct{}  // closed by watch, when CMD has ended
	gone    chan struct{}  // closed by watch, when nothing that CMD started is left
	abandon chan struct{}  // closed by finish, if leftovers are ignored
	over    chan struct{}  // closed by finish, at its end
	watched sync.WaitGroup // for watch
	reapers sync.WaitGroup // for reapLoop
	reaping sync.Mutex     // held to reap strays, and to look at them
	killing atomic.Bool    // CMD may be stopped, and is not continued
	warned  map[int]bool   // that the process refuses signals; reapLoop's own
}

// An endOfCommand is how CMD ended.
type endOfCommand struct {
	status  syscall.WaitStatus
	guarded time.Time      // when the guard killed the group; zero if it did not
	left    []processEntry // those that run on
}

// notExecutableError is the error of a CMD that the system refuses to execute.
type notExecutableError struct{ errno unix.Errno }

func (e notExecutableError) Error() string { return e.errno.Error() }

// prepare starts the starter. The calling goroutine must be locked to its thread, and stay so until finish
// has returned: the kernel kills the leader when that thread ends.
func prepare(path string, argv []string, files []*os.File, g *guardian, c *cgroup, say func(string, ...any)) (*process, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	p := &process{
		say: say, leader: make(chan struct{}), gone: make(chan struct{}), abandon: make(chan struct{}), over: make(chan struct{}),
		terminal: terminalOf(files, g), guardian: g, cgroup: c, warned: make(map[int]bool),
	}
	if g == nil {
		setName(execName)
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
	attr := &os.ProcAttr{
		Env: []string{}, Files: append(append([]*os.File{}, files...), env, theirs),
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	attr.Sys.CgroupFD, attr.Sys.UseCgroupFD = p.cgroup.descriptor()
	argv = append([]string{"docent", starterCommand, path}, argv...)
	started, err := os.StartProcess(executable(), argv, attr)
	if err != nil && attr.Sys.UseCgroupFD { // docent may not put processes there
		p.cgroup, attr.Sys.UseCgroupFD = nil, false
		started, err = os.StartProcess(executable(), argv, attr)
	}
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
	err := gob.NewEncoder(p.env).Encode(env)
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
	if p.killing.Load() {
		return
	}
	if p.terminal.giveBack(p.pid) {
		p.say("the command gets the terminal")
	} else {
		p.say("the command was stopped while it holds a lock: it is continued")
	}
	p.Signal(syscall.SIGCONT)
}

// Signal is part of [Program].
func (p *process) Signal(sig syscall.Signal) { _ = unix.Kill(-p.pid, sig) } // an empty group is gone already

// SignalAll is part of [Program].
func (p *process) SignalAll(sig syscall.Signal) (refused []string) {
	if sig == syscall.SIGKILL {
		return describe(p.kill().refused)
	}
	return describe(signalAll(sig, p.pid, p.find))
}

// huntFor bounds one hunt. The supervisor sends KILL again while something is left.
const huntFor = 100 * time.Millisecond

// kill ends all that CMD has started. It returns what is left of it.
func (p *process) kill() bag {
	p.killing.Store(true)
	p.Signal(syscall.SIGKILL)
	p.reaping.Lock()
	defer p.reaping.Unlock()
	h := hunt{cgroup: p.cgroup, find: p.find, spared: p.before, keep: p.pid, stems: []int{os.Getpid()}}
	return h.run(huntFor)
}

// find is the finder of CMD and what it has started, but what has ended.
func (p *process) find(visit func(processEntry) bool) error {
	return findBelow(p.before, p.cgroup, visit)
}

// findBelow is a finder of what runs below this process, and in the cgroup: the children of a process may be left
// to the first one of another pid namespace.
func findBelow(except []int, c *cgroup, visit func(processEntry) bool) error {
	seen := map[int]bool{os.Getpid(): true}
	err := walk(os.Getpid(), except, seen, visit)
	for _, pid := range c.pids() {
		if e, ok, fault := entryOf(pid); fault == nil && ok && running(e) && !seen[pid] {
			visit(e)
		}
	}
	return err
}

// running returns CMD and what it has started, but what has ended.
func (p *process) running() (list []processEntry, fault error) {
	fault = p.find(func(e processEntry) bool {
		list = append(list, e)
		return true
	})
	return list, fault
}

// Left is part of [Program].
func (p *process) Left() []string {
	list, _ := p.running()
	return describe(list)
}

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
	end.left, _ = p.running()
	return end
}
