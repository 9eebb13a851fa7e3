package execute

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process is CMD with all that it starts. It is prepared before docent has the lock, and started
// under the lock. CMD leads a process group, and stays unreaped until finish, so that the group's number
// can't be reused.
type process struct {
	tree

	say      func(format string, args ...any)
	starter  *os.File // the connection with it
	guardian *guardian
	terminal *terminal

	ended     chan struct{} // closed by watch, when CMD has ended
	gone      chan struct{} // closed by watch, at its end: nothing that CMD started is left, or it is abandoned
	abandon   chan struct{} // closed by finish, if leftovers are ignored
	killing   atomic.Bool   // CMD may be stopped, and is not continued
	continued time.Time     // when CMD was continued last; watch's own
	warned    map[int]bool  // that the process refuses signals; watch's own
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
// has returned: the kernel kills CMD when that thread ends.
func prepare(path string, argv []string, files []*os.File, g *guardian, c *cgroup, say func(string, ...any)) (*process, error) {
	p := &process{
		tree: tree{cgroup: c}, say: say, guardian: g, terminal: terminalOf(files, g),
		ended: make(chan struct{}), gone: make(chan struct{}), abandon: make(chan struct{}), warned: make(map[int]bool),
	}
	own := childName
	if g == nil {
		own = execName
	}
	if err := p.grow(own); err != nil {
		return nil, err
	}
	attr := &os.ProcAttr{Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}}
	if c != nil {
		attr.Sys.CgroupFD, attr.Sys.UseCgroupFD = int(c.dir.Fd()), true
	}
	argv = append([]string{"docent", starterCommand, path}, argv...)
	var err error
	p.leader, p.starter, err = startOwn(argv, attr)
	if err != nil && attr.Sys.UseCgroupFD { // docent may not put processes there
		p.cgroup, attr.Sys.UseCgroupFD = nil, false
		p.leader, p.starter, err = startOwn(argv, attr)
	}
	if err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	go p.watch() // finish waits for it
	return p, nil
}

// start has the starter become CMD. It returns notExecutableError if the system refuses.
func (p *process) start(env []string) error {
	p.terminal.give(p.leader)
	if err := gob.NewEncoder(p.starter).Encode(env); err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	errno, err := readFault(p.starter)
	if err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	if errno != 0 {
		return notExecutableError{errno}
	}
	return nil
}

// docent looks at CMD and at what is left each second, and for processes that it could not stop. If there are many, it
// looks for those less often, so that a hundredth of the time is spent on it.
const (
	warnEvery = time.Second
	warnShare = 100
)

// talkOfLeftovers is how long docent waits for leftovers before it says so.
const talkOfLeftovers = 100 * time.Millisecond

// watch waits until CMD has ended and is the only one left of all that it has started. What is left to docent is
// docent's child, so it looks again when a child has ended or was stopped. Meanwhile it reaps those that have ended.
func (p *process) watch() {
	defer close(p.gone)
	changed := make(chan os.Signal, 1) // one look sees all
	signal.Notify(changed, syscall.SIGCHLD)
	defer signal.Stop(changed)
	pause := warnEvery / 32
	look := time.NewTimer(pause) // the kernel does not tell of an escape from a cgroup, or of free files
	defer look.Stop()
	var next time.Time        // to warn
	var talk <-chan time.Time // from the end of CMD on
	for {
		p.reap()
		if talk == nil && p.leaderEnded() {
			close(p.ended)
			talk = time.After(talkOfLeftovers)
		}
		if talk != nil && !p.anyLeft() {
			return
		}
		select {
		case <-changed:
		case <-look.C:
			if began := time.Now(); began.After(next) {
				p.warn()
				next = time.Now().Add(warnShare * time.Since(began))
			}
			pause = min(2*pause, warnEvery)
			look.Reset(pause)
		case <-talk:
			if p.anyLeft() {
				p.say("the command has ended, and left behind: %s", strings.Join(p.leftBehind(), ", "))
			}
		case <-p.abandon:
			return
		}
	}
}

// cldStopped is waitid's code for a process that was stopped. Package unix lacks it.
const cldStopped = 5

// leaderEnded reports whether CMD has ended. It continues a CMD that was stopped, but not more than once in a second:
// it may stop again and again.
func (p *process) leaderEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.leader, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT|unix.WNOHANG, nil)
	switch {
	case err != nil:
		return !errors.Is(err, unix.EINTR)
	case info.Code != cldStopped:
		return info.Code != 0 // there is nothing to tell
	case time.Since(p.continued) > time.Second:
		_ = unix.Waitid(unix.P_PID, p.leader, &info, unix.WSTOPPED|unix.WNOHANG, nil) // consumes the stop
		p.continued = time.Now()
		p.resume()
	}
	return false
}

// resume continues a CMD that was stopped, because a holder that is stopped blocks all waiters.
func (p *process) resume() {
	if p.killing.Load() {
		return
	}
	if p.terminal.giveBack(p.leader) {
		p.say("the command gets the terminal")
	} else {
		p.say("the command was stopped while it holds a lock: it is continued")
	}
	p.Signal(syscall.SIGCONT)
}

// leftBehind describes what CMD has started and left behind.
func (p *process) leftBehind() []string {
	list, err := p.running()
	left := describe(list)
	if err != nil {
		left = append(left, "perhaps others: "+err.Error())
	}
	if len(left) == 0 {
		left = append(left, "processes that have just ended, or that /proc hides")
	}
	return left
}

// warn says which processes run as another user, such as those of sudo: docent may not send them signals, and can't
// end them but by the cgroup.
func (p *process) warn() {
	list, _ := p.running()
	for _, e := range list {
		if !p.warned[e.pid] && errors.Is(unix.Kill(e.pid, 0), unix.EPERM) && !p.cgroup.has(e.pid) {
			p.warned[e.pid] = true
			p.say("%s runs as another user, so docent can't stop it: if the lock is lost, it may run beside the next holder's command", describe([]processEntry{e})[0])
		}
	}
}

// Signal is part of [Program].
func (p *process) Signal(sig syscall.Signal) { _ = unix.Kill(-p.leader, sig) } // an empty group is gone already

// SignalAll is part of [Program].
func (p *process) SignalAll(sig syscall.Signal) (refused []string) {
	if sig != syscall.SIGKILL {
		return describe(p.signal(sig))
	}
	p.killing.Store(true)
	p.Signal(sig)
	return describe(p.hunt().refused)
}

// Left is part of [Program].
func (p *process) Left() []string {
	list, _ := p.running()
	return describe(list)
}

// Leader is part of [Program].
func (p *process) Leader() <-chan struct{} { return p.ended }

// Gone is part of [Program].
func (p *process) Gone() <-chan struct{} { return p.gone }

// Guarded is part of [Program].
func (p *process) Guarded(kill time.Time) { p.guardian.kill(kill) }

// finish waits until nothing that CMD started is left, or abandons what CMD left behind, and reaps CMD. By then the
// guard knows. If CMD was not started, finish ends the starter.
func (p *process) finish() endOfCommand {
	p.starter.Close()
	<-p.ended
	close(p.abandon)
	<-p.gone
	p.terminal.take()
	end := endOfCommand{guarded: p.guardian.finish()}
	end.status = reapAtEnd(p.leader)
	p.reap()
	end.left, _ = p.running()
	return end
}
