package execute

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

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

// terminalOf returns the terminal of the standard streams.
func terminalOf(files []*os.File) *terminal {
	if !cli.Terminal(files[0]) {
		return nil
	}
	return &terminal{fd: int(files[0].Fd()), own: unix.Getpgrp(), all: cli.Terminal(files[1])}
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
	t.given = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) == nil
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
		signal.Ignore(syscall.SIGTTOU) // a group in the background would be stopped
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
	}
}
