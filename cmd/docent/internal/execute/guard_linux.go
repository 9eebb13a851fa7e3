package execute

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// The descriptor of the guard's cgroup, if withCgroup follows the guard's process id.
const (
	guardCgroup = ownConnection + 1
	withCgroup  = "+cgroup"
)

// A message is one between docent and its guard. An empty one is a question of the guard's, and docent's answer.
type message struct {
	Kill   int64          `json:"kill,omitzero"`   // to the guard: the time for KILL, in nanoseconds of CLOCK_BOOTTIME
	Status *Status        `json:"status,omitzero"` // to the guard: the state of the run, in case docent dies
	Code   int            `json:"code,omitzero"`   // to the guard, with the status: docent's exit code
	Done   bool           `json:"done,omitzero"`   // to the guard: what runs now may run on; to docent: the answer
	End    bool           `json:"end,omitzero"`    // to the guard: docent's exit code is its last word
	Signal syscall.Signal `json:"signal,omitzero"` // to docent: the guard got the signal
	Killed int64          `json:"killed,omitzero"` // to docent, with the answer: when the guard sent KILL, by CLOCK_BOOTTIME
}

// send sends a message to the other process of docent, which may have ended: then its reader sees that. It does not wait
// for one that is stopped, and does not read.
func send(to *os.File, m message) {
	_ = to.SetWriteDeadline(time.Now().Add(guardPatience))
	_ = json.NewEncoder(to).Encode(m)
}

// receive calls do for each message of the other process of docent, until that one has ended.
func receive(from *os.File, do func(message)) {
	for messages := json.NewDecoder(from); ; {
		var m message
		if messages.Decode(&m) != nil {
			return
		}
		do(m)
	}
}

// guardPatience is how long docent waits for a guard that does not answer.
const guardPatience = time.Second

// hung is how long the guard waits for a docent that does not answer, when docent should end.
const hung = 10 * time.Second

// lookAgain is how long the guard waits for processes to end before it looks for further ones.
const lookAgain = 20 * time.Millisecond

// A guard is the process that the user started. It starts docent as its child, and is a subreaper. So
// all that CMD starts is a descendant of the guard as long as it runs, whatever group, session or user
// it changes to, and whether docent lives or not. The guard kills these descendants if docent dies. It
// also does so at the time for KILL, in case docent is stopped.
type guard struct {
	tree

	app        *cli.App
	statusPath string
	connection *os.File

	mu       sync.Mutex // guards following
	killAt   int64      // CLOCK_BOOTTIME; 0 for none yet
	killed   int64      // when the guard sent the first KILL, by CLOCK_BOOTTIME; 0 if it has not
	answered time.Time  // when docent answered last
	code     int        // docent's exit code, as it has sent it
	status   Status     // the same
	done     bool       // what runs may run on
	ended    bool       // docent has said its last word
	insists  bool       // that docent ends
}

// guardExec runs docent under a guard, which is the calling process, and returns docent's exit code.
// The calling goroutine must be locked to its thread: the kernel continues a docent that is stopped when
// that thread ends.
func guardExec(app *cli.App, o *options) (int, error) {
	g := &guard{app: app, statusPath: o.statusFile}
	code, err := g.run(!o.noCgroup)
	if err != nil {
		g.write(Status{Outcome: OutcomeFailed, Reason: reasonOf(err)})
	}
	return code, err
}

func (g *guard) run(withCgroup bool) (int, error) {
	if err := checkProc(); err != nil {
		return codeFailed, err
	}
	files, err := streams(g.app)
	if err != nil {
		return codeFailed, err
	}
	if err := g.grow(execName); err != nil {
		return codeFailed, err
	}
	signals := takeSignals(make(chan os.Signal, 16))
	if withCgroup {
		g.cgroup = makeCgroup()
		defer g.cgroup.remove()
	}
	if err := g.launch(files); err != nil {
		return codeFailed, fmt.Errorf("start docent: %w", err)
	}
	go g.passOn(signals) // ends with the process
	read := make(chan struct{})
	go func() { defer close(read); receive(g.connection, g.follow) }() // ends with docent
	status := reapAtEnd(g.docent)
	<-read
	if !g.ended {
		return g.conclude(status), nil
	}
	return exitCode(status), nil
}

// launch starts docent, in a process group of its own: what is sent to the guard's group, such as a shell's STOP
// and KILL of a job, must not reach both.
func (g *guard) launch(files []*os.File) (err error) {
	env := fmt.Sprintf("%s=%d", envGuard, os.Getpid())
	if g.cgroup != nil {
		files, env = append(files, g.cgroup.dir), env+withCgroup
	}
	g.docent, g.connection, err = startOwn(os.Args, &os.ProcAttr{
		Env:   append(slices.Clone(g.app.Env), env),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}, // then it reads that the guard is gone
	})
	return err
}

// passOn passes signals on to docent by messages, so it gets each once.
func (g *guard) passOn(signals <-chan os.Signal) {
	for sig := range signals {
		number, ok := sig.(syscall.Signal)
		if !ok {
			continue
		}
		send(g.connection, message{Signal: number})
		if endsWait(number) {
			g.insist()
		}
	}
}

// resume continues the process if it is stopped, and reports whether it was.
func resume(pid int) bool {
	e, ok, err := entryOf(pid)
	stopped := err == nil && ok && e.state == 'T'
	if stopped {
		_ = unix.Kill(pid, unix.SIGCONT) // it may have ended
	}
	return stopped
}

// insist begins to see to it that docent ends, if it has not begun yet.
func (g *guard) insist() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.insists {
		g.insists, g.answered = true, time.Now()
		go g.ask() // ends with the process, or when docent has answered in time
	}
}

// ask continues a docent that is stopped, and ends one that does not answer. Then the guard does docent's work. A docent
// whose threads are about to stop may answer once more, so one answer is none.
func (g *guard) ask() {
	for answers := 0; ; {
		asked := time.Now()
		resume(g.docent)
		send(g.connection, message{})
		<-time.After(time.Second / 2)
		g.mu.Lock()
		silent, late := time.Since(g.answered), g.killAt > 0 && bootTime() > g.killAt
		if answers++; !g.answered.After(asked) {
			answers = 0
		}
		g.insists = late || answers < 2
		over := !g.insists
		g.mu.Unlock()
		switch {
		case over:
			return
		case silent > hung:
			g.app.Say("guard: docent does not answer: KILL to docent")
			_ = unix.Kill(g.docent, unix.SIGKILL)
			return
		}
	}
}

// follow does what docent's message says.
func (g *guard) follow(m message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m == (message{}) { // no other one: docent may have sent it before it was stopped
		g.answered = time.Now()
	}
	if m.Kill > 0 && g.killAt == 0 {
		go g.watchClock() // ends with the process
	}
	g.killAt = max(g.killAt, m.Kill)
	if m.Status != nil {
		g.status, g.code = *m.Status, m.Code
	}
	g.ended = g.ended || m.End
	if m.Done {
		g.done = true
		send(g.connection, message{Done: true, Killed: g.killed})
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
			g.insist()
			killAt = bootTime() + int64(pause)
			pause = min(2*pause, time.Second)
		}
		at := unix.NsecToTimespec(killAt)
		_ = unix.ClockNanosleep(unix.CLOCK_BOOTTIME, unix.TIMER_ABSTIME, &at, nil) // the loop looks again
	}
}

// kill sends KILL to CMD and all that it has started, unless docent has said that it may run on. It returns what
// is left.
func (g *guard) kill() bag {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return bag{done: true}
	}
	began := bootTime()
	b := g.hunt()
	if b.found && g.killed == 0 {
		g.killed = began
	}
	return b
}

// conclude does the work of a docent that has died: it kills what runs, says so, and writes the status. It returns
// the exit code.
func (g *guard) conclude(docent syscall.WaitStatus) int {
	left := g.killAll()
	how := fmt.Sprintf("with exit code %d", docent.ExitStatus())
	if docent.Signaled() {
		how = "by " + name(docent.Signal())
	}
	g.mu.Lock() // watchClock may run
	s, code, killed, late := g.status, g.code, g.killed, g.killAt > 0 && g.killed >= g.killAt
	g.mu.Unlock()
	if s.Outcome != "" { // all was over but the release
		g.app.Say("guard: docent ended %s; its lock ends with the session", how)
		g.write(s)
		return code
	}
	s.Outcome, s.Reason, s.NotEnded, code = OutcomeFailed, "docent_ended", listed(left), codeFailed
	if killed > 0 && late {
		s.Outcome, s.Reason, code = OutcomeLost, "lease_deadline", codeLost
	}
	if s.Granted == nil {
		g.app.Say("guard: docent ended %s", how)
	} else {
		s.Held = time.Since(*s.Granted).Seconds()
		g.app.Say("guard: docent ended %s: KILL to the command; its lock ends with the session", how)
	}
	if s.Granted != nil && killed > 0 {
		kill := name(syscall.SIGKILL)
		s.Child.Signal, s.KilledAt = &kill, optionalTime(timeOf(killed))
	}
	if len(left) > 0 {
		g.app.Say("guard: not ended, so it may run beside the next holder's command: %s", strings.Join(describe(left), ", "))
	}
	g.write(s)
	return code
}

// killAll kills what runs, and returns what does not end in time.
func (g *guard) killAll() []processEntry {
	for until := time.Now().Add(patience); ; {
		if b := g.kill(); b.done || time.Now().After(until) {
			return b.left
		}
		<-time.After(lookAgain)
	}
}

// write writes the status that docent could not write.
func (g *guard) write(s Status) {
	file, err := openStatus(g.statusPath, renewStatus)
	if err == nil {
		err = file.write(s, true)
	}
	if err != nil {
		g.app.Say("guard: %v", err)
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

// timeOf returns the time of a number of bootTime.
func timeOf(boot int64) time.Time { return time.Now().Add(time.Duration(boot - bootTime())) }
