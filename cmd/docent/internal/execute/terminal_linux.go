package execute

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A terminal is docent's controlling terminal, if its standard input is one. It is nil if there is none.
type terminal struct {
	fd  int
	own int  // docent's process group
	all bool // standard output is a terminal, too

	mu    sync.Mutex // guards following
	given bool       // CMD's group has it, or had it
}

// terminalOf returns the terminal of the standard streams. docent's group is its guard's, if it has one.
func terminalOf(files []*os.File, g *guardian) *terminal {
	if !cli.Terminal(files[0]) {
		return nil
	}
	own := unix.Getpgrp()
	if g != nil {
		if group, err := unix.Getpgid(g.pid); err == nil {
			own = group
		}
	}
	return &terminal{fd: int(files[0].Fd()), own: own, all: cli.Terminal(files[1])}
}

// setForeground makes the group the terminal's foreground group. A process in the background would be stopped.
func (t *terminal) setForeground(group int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, backgroundWrites(), &before); err != nil {
		return err
	}
	err := unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	return errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil))
}

// backgroundWrites returns the set of the signal that stops a process in the background that writes to the terminal.
func backgroundWrites() *unix.Sigset_t {
	set := new(unix.Sigset_t)
	set.Val[0] = 1 << (unix.SIGTTOU - 1)
	return set
}

// writeInBackground lets the calling goroutine write to a terminal that stops those in the background that do. docent
// must not be stopped. The goroutine has its thread for itself from then on.
func writeInBackground() {
	runtime.LockOSThread()                                           // forever: the thread ends with the goroutine
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, backgroundWrites(), nil) // else the guard continues docent
}

// foreground reports whether docent's group has the terminal.
func (t *terminal) foreground() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.own
}

// give makes the group the terminal's foreground group, if docent's group is. It does not if
// docent's output goes to another program: that one, such as a pager, needs the terminal itself.
func (t *terminal) give(group int) {
	if t != nil && t.all {
		t.giveBack(group)
	}
}

// giveBack makes the group the foreground group, and reports whether it did.
func (t *terminal) giveBack(group int) bool {
	if t == nil || !t.foreground() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.given = t.setForeground(group) == nil
	return t.given
}

// take gives the terminal back to docent's group, if CMD's group had it.
func (t *terminal) take() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.given {
		_ = t.setForeground(t.own) // the terminal may have gone
	}
}
