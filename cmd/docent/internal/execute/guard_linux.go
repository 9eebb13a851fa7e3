package execute

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// envGuard tells docent that its parent is its guard: it has the parent's process id.
const envGuard = "DOCENT_GUARD"

// The descriptors of a docent that has a guard.
const (
	fromGuard = 3
	toGuard   = 4
)

// The messages between docent and its guard, one a line.
const (
	guardKill   = "kill"   // to the guard: the time for KILL, in nanoseconds of CLOCK_BOOTTIME
	guardDone   = "done"   // to the guard: what runs now may run on; the answer is "ok" or "killed"
	guardOK     = "ok"     // to docent
	guardKilled = "killed" // to docent: the guard has sent KILL at this time of CLOCK_BOOTTIME
	guardSignal = "signal" // to docent: the guard got the signal of this number
)

// guardPatience is how long docent waits for a guard that does not answer.
const guardPatience = time.Second

// lookAgain is how long the guard waits for processes to end before it looks for further ones.
const lookAgain = 20 * time.Millisecond

// A guard is the process that the user started. It starts docent as its child, and is a subreaper. So
// all that CMD starts is a descendant of the guard as long as it runs, whatever group, session or user
// it changes to, and whether docent lives or not. The guard kills these descendants if docent dies. It
// also does so at the time for KILL, in case docent is stopped.
type guard struct {
	docent int
	before []int // children of the program that became docent: they are not CMD's
	out    *os.File

	mu     sync.Mutex // guards following
	killAt int64      // CLOCK_BOOTTIME; 0 for none yet
	killed int64      // when the guard sent the first KILL, by CLOCK_BOOTTIME; 0 if it has not
	done   bool
}

// guardExec runs docent under a guard, which is the calling process, and returns docent's exit code.
// The calling goroutine must be locked to its thread: the kernel continues a docent that is stopped when
// that thread ends.
func guardExec(app *cli.App) (int, error) {
	files, err := streams(app)
	if err != nil {
		return codeFailed, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return codeFailed, fmt.Errorf("become a subreaper: %w", err)
	}
	g := &guard{}
	g.before, _ = children(os.Getpid())
	signals := takeSignals(make(chan os.Signal, 16))
	in, err := g.launch(app.Env, files)
	if err != nil {
		return codeFailed, fmt.Errorf("start docent: %w", err)
	}
	go g.passOn(signals) // ends with the process
	read := make(chan struct{})
	go func() { defer close(read); g.follow(in) }() // ends with docent
	status := reap(g.docent)
	<-read
	if !g.done { // docent has died, or it did not come to CMD
		g.end(app, status)
	}
	return exitCode(status), nil
}

// launch starts docent. It returns what docent writes.
func (g *guard) launch(env []string, files []*os.File) (io.Reader, error) {
	theirs, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	in, answers, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer answers.Close()
	docent, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   append(slices.Clone(env), fmt.Sprintf("%s=%d", envGuard, os.Getpid())),
		Files: append(slices.Clone(files), theirs, answers),
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGCONT}, // then it reads that the guard is gone
	})
	if err != nil {
		return nil, err
	}
	g.docent, g.out = docent.Pid, out
	return in, docent.Release()
}

// passOn passes signals on to docent by messages. A signal to the whole process group reaches docent,
// too, which takes the messages alone: it gets each signal once.
func (g *guard) passOn(signals <-chan os.Signal) {
	for sig := range signals {
		if number, ok := sig.(syscall.Signal); ok {
			fmt.Fprintln(g.out, guardSignal, int(number)) // docent may have ended
		}
	}
}

// follow does what docent's messages say, until docent has ended.
func (g *guard) follow(in io.Reader) {
	var clock sync.Once
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		g.mu.Lock()
		switch word {
		case guardKill:
			at, _ := strconv.ParseInt(rest, 10, 64)
			g.killAt = max(g.killAt, at)
			clock.Do(func() { go g.watchClock() }) // ends with the process
		case guardDone:
			g.done = true
			if g.killed > 0 {
				fmt.Fprintln(g.out, guardKilled, g.killed)
			} else {
				fmt.Fprintln(g.out, guardOK)
			}
		}
		g.mu.Unlock()
	}
}

// watchClock sends KILL at the time for it, and to what is started afterwards. The clock runs on while
// the machine is suspended.
func (g *guard) watchClock() {
	for pause := lookAgain; ; {
		g.mu.Lock()
		killAt, done := g.killAt, g.done
		g.mu.Unlock()
		switch {
		case done:
			return
		case bootTime() >= killAt:
			g.kill()
			killAt = bootTime() + int64(pause)
			pause = min(2*pause, time.Second)
		}
		at := unix.NsecToTimespec(killAt)
		_ = unix.ClockNanosleep(unix.CLOCK_BOOTTIME, unix.TIMER_ABSTIME, &at, nil) // the loop looks again
	}
}

// kill sends KILL to CMD and all that it has started, unless docent has said that it may run on.
func (g *guard) kill() (refused []processEntry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return nil
	}
	sent, refused := signalAll(syscall.SIGKILL, g.commands)
	if sent > 0 && g.killed == 0 {
		g.killed = bootTime()
	}
	return refused
}

// commands returns CMD and what it has started.
func (g *guard) commands() ([]processEntry, error) {
	list, err := descendants(os.Getpid(), g.before)
	return slices.DeleteFunc(list, func(e processEntry) bool { return e.pid == g.docent }), err
}

// end kills what a docent that has died left behind, and says so.
func (g *guard) end(app *cli.App, status syscall.WaitStatus) {
	var refused []processEntry
	for until := time.Now().Add(patience); ; {
		refused = g.kill()
		reapChildren(g.before)
		left, err := g.commands()
		if len(left) == len(refused) && err == nil || time.Now().After(until) {
			break
		}
		<-time.After(lookAgain)
	}
	if g.killed == 0 && len(refused) == 0 {
		return // it had not come to CMD
	}
	how := fmt.Sprintf("with exit code %d", status.ExitStatus())
	if status.Signaled() {
		how = "by " + name(status.Signal())
	}
	app.Say("guard: docent ended %s: KILL to the command; its lock ends with the session", how)
	if left, _ := g.commands(); len(left) > 0 {
		app.Say("guard: not ended, so it may run beside the next holder's command: %s", strings.Join(describe(left), ", "))
	}
}

// reap waits for the end of the child and returns its status.
func reap(pid int) (status syscall.WaitStatus) {
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return status
		}
	}
}

// reapChildren reaps this process's ended children but those that are excepted.
func reapChildren(except []int) {
	list, _ := children(os.Getpid())
	for _, pid := range list {
		if !slices.Contains(except, pid) {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it may run
		}
	}
}

// bootTime returns the time since the machine's start, in nanoseconds.
func bootTime() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return time.Now().UnixNano() // Linux has the clock since 2.6.39
	}
	return at.Nano()
}

// A guardian is docent's side of its guard. A nil guardian is for a docent without one.
type guardian struct {
	pid    int
	out    *os.File
	answer chan string // capacity 1: the answer to "done"; closed when the guard has ended
}

// newGuardian returns the guardian of a docent that a guard has started, nil if there is none. Signals
// that the guard gets are sent to signals, and KILL when it has died: then CMD has to end, because the
// user has killed docent, or nothing would stop CMD if docent died.
func newGuardian(app *cli.App, signals chan<- os.Signal) (*guardian, error) {
	text := app.Getenv(envGuard)
	if text == "" {
		return nil, nil
	}
	if number, err := strconv.Atoi(text); err != nil || number != os.Getppid() {
		return nil, fmt.Errorf("%s=%q: the guard has ended, or docent sets this variable alone", envGuard, text)
	}
	for _, fd := range []int{fromGuard, toGuard} {
		syscall.CloseOnExec(fd)
	}
	_ = syscall.SetNonblock(toGuard, true) // so that writes have deadlines
	g := &guardian{pid: os.Getppid(), out: os.NewFile(toGuard, "guard"), answer: make(chan string, 1)}
	takeSignals(make(chan os.Signal, 1))                 // and discard them: they come from the guard
	go g.follow(os.NewFile(fromGuard, "guard"), signals) // ends with the guard
	return g, nil
}

// follow reads the guard's messages until the guard has ended.
func (g *guardian) follow(in io.Reader, signals chan<- os.Signal) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		if word != guardSignal {
			g.answer <- lines.Text()
			continue
		}
		if number, err := strconv.Atoi(rest); err == nil {
			signals <- syscall.Signal(number)
		}
	}
	close(g.answer)
	signals <- syscall.SIGKILL
}

// kill passes the time for KILL to the guard.
func (g *guardian) kill(at time.Time, say func(format string, args ...any)) {
	if g == nil {
		return
	}
	g.resume(say)
	g.send(fmt.Sprint(guardKill, " ", bootTime()+int64(time.Until(at))))
}

// resume continues a guard that was stopped, because it could not act if docent died.
func (g *guardian) resume(say func(format string, args ...any)) {
	if list, _ := processesOf([]int{g.pid}); len(list) == 1 && list[0].state == 'T' {
		say("docent was stopped while the command holds a lock: it is continued")
		_ = unix.Kill(g.pid, unix.SIGCONT) // it may have ended
	}
}

// send sends the message. It does not wait for a guard that is stopped.
func (g *guardian) send(message string) {
	_ = g.out.SetWriteDeadline(time.Now().Add(guardPatience))
	_, _ = fmt.Fprintln(g.out, message) // the guard may have been killed: follow sees it
}

// finish tells the guard that what still runs may run on, and returns when the guard sent KILL; zero if
// it did not.
func (g *guardian) finish(say func(format string, args ...any)) (killed time.Time) {
	if g == nil {
		return killed
	}
	g.resume(say)
	g.send(guardDone)
	select {
	case answer := <-g.answer:
		word, at, _ := strings.Cut(answer, " ")
		if number, err := strconv.ParseInt(at, 10, 64); word == guardKilled && err == nil {
			killed = time.Now().Add(time.Duration(number - bootTime()))
		}
	case <-time.After(guardPatience):
	}
	return killed
}
