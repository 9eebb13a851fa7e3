package execute

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// awaitGroup waits until the group has no process but its ended leader.
func (p *process) awaitGroup() {
	pause := 5 * time.Millisecond
	for {
		p.reapStrays()
		left := p.leftInGroup()
		if len(left) == 0 {
			return
		}
		if !p.said && pause > 100*time.Millisecond {
			p.said = true
			p.say("the command has ended, and left in its group: %s", strings.Join(left, ", "))
		}
		select {
		case <-time.After(pause):
		case <-p.abandon:
			return
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}

// leftInGroup describes the processes of the group but its leader, which must have ended. CMD's
// processes become docent's children when their parents end. So if docent has no other children, the
// group is empty. Meanwhile no child is reaped: a process that starts another one and ends stays
// visible, and the result is not empty.
func (p *process) leftInGroup() []string {
	p.reaping.Lock()
	defer p.reaping.Unlock()
	// The guard may end during one look, which then may miss a child.
	for range 2 {
		strays, err := p.strays()
		if len(strays) == 0 && err == nil {
			continue
		}
		left, err := groupMembers(p.pid)
		if err != nil {
			left = append(left, "perhaps others: "+err.Error())
		}
		return left
	}
	return nil
}

// reapLoop reaps the processes that CMD's group leaves to docent, while CMD runs. prepare starts it,
// finish ends it and waits for it.
func (p *process) reapLoop() {
	ended := make(chan os.Signal, 1) // one look reaps all
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-ended:
			p.reapStrays()
		case <-p.over:
			return
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

// strays returns docent's children but the leader and the guard, ended ones included. With an error
// the list lacks some.
func (p *process) strays() ([]int, error) {
	all, err := children()
	return slices.DeleteFunc(all, func(pid int) bool {
		return pid == p.pid || p.guardian != nil && pid == p.guardian.pid()
	}), err
}
