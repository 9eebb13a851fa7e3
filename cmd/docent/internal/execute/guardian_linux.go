package execute

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A guardian is docent's side of its guard. A nil guardian is for a docent without one.
type guardian struct {
	pid        int
	cgroup     *cgroup
	connection *os.File
	say        func(format string, args ...any)
	answer     chan time.Time // capacity 1: the answer to "done"
	gone       chan struct{}  // closed when the guard has ended
}

// newGuardian returns the guardian of a docent that a guard has started, nil if there is none. Signals
// that the guard gets are sent to signals, and KILL when it has died: then CMD has to end, because the
// user has killed docent, or nothing would stop CMD if docent died.
func newGuardian(app *cli.App, signals chan<- os.Signal, say func(format string, args ...any)) (*guardian, error) {
	text := app.Getenv(envGuard)
	if text == "" {
		return nil, nil
	}
	digits, shares := strings.CutSuffix(text, withCgroup)
	if number, err := strconv.Atoi(digits); err != nil || number != os.Getppid() {
		return nil, fmt.Errorf("%s=%q: the guard has ended, or docent sets this variable alone", envGuard, text)
	}
	g := &guardian{pid: os.Getppid(), connection: connection(), say: say, answer: make(chan time.Time, 1), gone: make(chan struct{})}
	if shares {
		syscall.CloseOnExec(guardCgroup)
		path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", guardCgroup)) // without it the cgroup stays if the guard dies
		g.cgroup = &cgroup{os.NewFile(guardCgroup, "cgroup"), path}
	}
	takeSignals(make(chan os.Signal, 1)) // and discard them: they come from the guard
	go func() {                          // ends with the guard
		receive(g.connection, func(m message) { g.follow(m, signals) })
		close(g.gone)
		signals <- syscall.SIGKILL
	}()
	return g, nil
}

// follow does what the guard's message says.
func (g *guardian) follow(m message, signals chan<- os.Signal) {
	switch {
	case m.Signal != 0:
		signals <- m.Signal
	case m.Killed > 0:
		g.answer <- timeOf(m.Killed)
	case m.Done:
		g.answer <- time.Time{}
	default:
		send(g.connection, message{})
	}
}

// hasDied reports whether there was a guard, and it has ended.
func (g *guardian) hasDied() bool {
	if g == nil {
		return false
	}
	select {
	case <-g.gone:
		return true
	default:
		return false
	}
}

// kill passes the time for KILL to the guard.
func (g *guardian) kill(at time.Time) {
	if g != nil {
		g.resume()
		send(g.connection, message{Kill: bootTime() + int64(time.Until(at))})
	}
}

// note passes to the guard the exit code and the state of the run, which it uses if docent dies.
func (g *guardian) note(code int, s Status) {
	if g != nil {
		send(g.connection, message{Status: &s, Code: code})
	}
}

// group returns the cgroup that the guard has made.
func (g *guardian) group() *cgroup {
	if g == nil {
		return nil
	}
	return g.cgroup
}

// end tells the guard that docent ends as it should. If the guard has died, it does what is left of the guard's work.
func (g *guardian) end() {
	switch {
	case g == nil:
	case g.hasDied():
		g.cgroup.remove()
	default:
		send(g.connection, message{End: true})
	}
}

// resume continues a guard that was stopped, because it could not act if docent died.
func (g *guardian) resume() {
	if resume(g.pid) {
		g.say("docent was stopped while the command holds a lock: it is continued")
	}
}

// finish tells the guard that what still runs may run on, and returns when the guard sent KILL; zero if
// it did not.
func (g *guardian) finish() (killed time.Time) {
	if g == nil {
		return killed
	}
	g.resume()
	send(g.connection, message{Done: true})
	select {
	case killed = <-g.answer:
	case <-g.gone:
	case <-time.After(guardPatience):
	}
	return killed
}
