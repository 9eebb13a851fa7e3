package execute

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A guardian is docent's side of its guard. A nil guardian is for a docent without one.
type guardian struct {
	pid    int
	cgroup *cgroup
	out    *os.File
	answer chan string   // capacity 1: the answer to "done"
	gone   chan struct{} // closed when the guard has ended
}

// newGuardian returns the guardian of a docent that a guard has started, nil if there is none. Signals
// that the guard gets are sent to signals, and KILL when it has died: then CMD has to end, because the
// user has killed docent, or nothing would stop CMD if docent died.
func newGuardian(app *cli.App, signals chan<- os.Signal) (*guardian, error) {
	text := app.Getenv(envGuard)
	if text == "" {
		return nil, nil
	}
	digits, shares := strings.CutSuffix(text, withCgroup)
	if number, err := strconv.Atoi(digits); err != nil || number != os.Getppid() {
		return nil, fmt.Errorf("%s=%q: the guard has ended, or docent sets this variable alone", envGuard, text)
	}
	setName(childName)
	g := &guardian{pid: os.Getppid(), answer: make(chan string, 1), gone: make(chan struct{})}
	descriptors := []int{fromGuard, toGuard}
	if shares {
		descriptors = append(descriptors, guardCgroup)
		path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", guardCgroup)) // without it the cgroup stays if the guard dies
		g.cgroup = &cgroup{os.NewFile(guardCgroup, "cgroup"), path}
	}
	for _, fd := range descriptors {
		syscall.CloseOnExec(fd)
	}
	_ = syscall.SetNonblock(toGuard, true) // so that writes have deadlines
	g.out = os.NewFile(toGuard, "guard")
	takeSignals(make(chan os.Signal, 1))                 // and discard them: they come from the guard
	go g.follow(os.NewFile(fromGuard, "guard"), signals) // ends with the guard
	return g, nil
}

// follow reads the guard's messages until the guard has ended.
func (g *guardian) follow(in io.Reader, signals chan<- os.Signal) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case guardThere:
			send(g.out, guardHere)
		case guardSignal:
			if number, err := strconv.Atoi(rest); err == nil {
				signals <- syscall.Signal(number)
			}
		default:
			g.answer <- lines.Text()
		}
	}
	close(g.gone)
	signals <- syscall.SIGKILL
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
func (g *guardian) kill(at time.Time, say func(format string, args ...any)) {
	if g == nil {
		return
	}
	g.resume(say)
	send(g.out, guardKill, bootTime()+int64(time.Until(at)))
}

// note passes to the guard the exit code and the state of the run, which it uses if docent dies.
func (g *guardian) note(code int, s Status) {
	if text, err := json.Marshal(s); g != nil && err == nil {
		send(g.out, guardStatus, code, string(text))
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
		send(g.out, guardEnd)
	}
}

// resume continues a guard that was stopped, because it could not act if docent died.
func (g *guardian) resume(say func(format string, args ...any)) {
	if resume(g.pid) {
		say("docent was stopped while the command holds a lock: it is continued")
	}
}

// finish tells the guard that what still runs may run on, and returns when the guard sent KILL; zero if
// it did not.
func (g *guardian) finish(say func(format string, args ...any)) (killed time.Time) {
	if g == nil {
		return killed
	}
	g.resume(say)
	send(g.out, guardDone)
	select {
	case answer := <-g.answer:
		word, at, _ := strings.Cut(answer, " ")
		if number, err := strconv.ParseInt(at, 10, 64); word == guardKilled && err == nil {
			killed = timeOf(number)
		}
	case <-g.gone:
	case <-time.After(guardPatience):
	}
	return killed
}
