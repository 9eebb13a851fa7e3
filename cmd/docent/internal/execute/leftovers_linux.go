package execute

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// awaitAll waits until CMD, which has ended, is the only one left of all that it has started. What is left to docent
// is docent's child, so it looks again when a child has ended.
func (p *process) awaitAll() {
	ended := make(chan os.Signal, 1) // one look sees all
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	talk := time.After(talkOfLeftovers)
	for {
		p.reapStrays()
		if !p.anyLeft() {
			return
		}
		select {
		case <-ended:
		case <-time.After(warnEvery): // the kernel does not tell of an escape from a cgroup, or of free files
		case <-talk:
			if left := p.leftBehind(); len(left) > 0 {
				p.say("the command has ended, and left behind: %s", strings.Join(left, ", "))
			}
		case <-p.abandon:
			return
		}
	}
}

// talkOfLeftovers is how long docent waits for leftovers before it says so.
const talkOfLeftovers = 100 * time.Millisecond

// anyLeft reports whether CMD has left anything behind. Processes become docent's children when their parents end, in
// whatever group or session they are. So if docent has no child but CMD, nothing is left. Meanwhile no child is
// reaped: a process that starts another one and ends stays visible.
func (p *process) anyLeft() bool {
	p.reaping.Lock()
	defer p.reaping.Unlock()
	strays, err := p.strays()
	return len(strays) > 0 || err != nil || len(p.cgroup.pids()) > 0
}

// leftBehind describes what CMD has started and left behind.
func (p *process) leftBehind() []string {
	if !p.anyLeft() {
		return nil
	}
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

// docent looks for processes that it could not stop each second. If there are many, it looks less often, so that a
// hundredth of the time is spent on it.
const (
	warnEvery = time.Second
	warnShare = 100
)

// reapLoop reaps the processes that CMD leaves to docent, while CMD runs, and warns of those that docent
// could not stop. prepare starts it, finish ends it and waits for it.
func (p *process) reapLoop() {
	ended := make(chan os.Signal, 1) // one look reaps all
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	pause := warnEvery / 32
	look := time.NewTimer(pause)
	defer look.Stop()
	for {
		select {
		case <-ended:
			p.reapStrays()
		case <-look.C:
			began := time.Now()
			p.warn()
			pause = min(2*pause, warnEvery)
			look.Reset(max(pause, warnShare*time.Since(began)))
		case <-p.over:
			return
		}
	}
}

// warn says which processes run as another user, such as those of sudo: docent may not signal them.
func (p *process) warn() {
	list, _ := p.running()
	for _, e := range refusing(list, p.cgroup) {
		if !p.warned[e.pid] {
			p.warned[e.pid] = true
			p.say("%s runs as another user, so docent can't stop it: if the lock is lost, it may run beside the next holder's command", describe([]processEntry{e})[0])
		}
	}
}

// reapStrays reaps the ended processes that were left to docent as a subreaper.
func (p *process) reapStrays() {
	p.reaping.Lock()
	defer p.reaping.Unlock()
	strays, _ := p.strays()
	for _, pid := range strays {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it may run
	}
}

// strays returns docent's children but CMD and those from before, ended ones included. With an error
// the list lacks some.
func (p *process) strays() ([]int, error) {
	all, err := children(os.Getpid())
	return slices.DeleteFunc(all, func(pid int) bool { return pid == p.pid || slices.Contains(p.before, pid) }), err
}
