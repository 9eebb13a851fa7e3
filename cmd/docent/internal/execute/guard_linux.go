package execute

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardAck is the guard's descriptor for its answer.
const guardAck = 3

// The guard's messages, one a line.
const (
	guardKill   = "kill" // with the time for KILL, in nanoseconds of CLOCK_BOOTTIME
	guardDone   = "done" // the group is gone: answered by "ok", or "killed" and the time if the guard did it
	guardKilled = "killed"
)

// A watchedGroup is the group that a guard kills; 0 for none.
type watchedGroup struct {
	mu     sync.Mutex
	number int
	killAt int64 // CLOCK_BOOTTIME; 0 for none yet
	killed int64 // when the guard killed the group, by CLOCK_BOOTTIME; 0 if it has not
}

// guard is the second process of an exec. It kills the group when its input ends without "done", so
// when docent has died. It also does so at the time for KILL, in case docent is stopped. It knows the
// group from its start on, so docent need not wait for it.
func guard(number int, killAt int64, in io.Reader, out io.Writer, errOut io.Writer) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTSTP)
	group := watchedGroup{number: number, killAt: killAt}
	var clock sync.Once
	watch := func() { clock.Do(func() { go group.watchClock() }) } // ends with the process
	if killAt > 0 {
		watch()
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case guardKill:
			at, _ := strconv.ParseInt(rest, 10, 64)
			group.postpone(at)
			watch()
		case guardDone:
			fmt.Fprintln(out, group.clear())
			return 0
		}
	}
	if group.kill() {
		fmt.Fprintln(errOut, "docent: guard: docent is gone: the command was killed; its lock ends with the session")
	}
	return 1
}

func (g *watchedGroup) postpone(killAt int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.killAt = max(g.killAt, killAt)
}

// clear forgets the group, so that its number may serve another, and returns the answer to "done".
func (g *watchedGroup) clear() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.number = 0
	if g.killed > 0 {
		return fmt.Sprint(guardKilled, " ", g.killed)
	}
	return "ok"
}

func (g *watchedGroup) kill() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.number == 0 {
		return false
	}
	g.killed = bootTime()
	return unix.Kill(-g.number, unix.SIGKILL) == nil
}

// watchClock kills the group at the time for KILL. The clock runs on while the machine is suspended.
func (g *watchedGroup) watchClock() {
	for {
		g.mu.Lock()
		killAt := g.killAt
		g.mu.Unlock()
		if bootTime() >= killAt {
			g.kill()
			return
		}
		at := unix.NsecToTimespec(killAt)
		_ = unix.ClockNanosleep(unix.CLOCK_BOOTTIME, unix.TIMER_ABSTIME, &at, nil) // the loop looks again
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

// A guardian is docent's side of the guard: it starts the guard, and another one if the guard dies.
type guardian struct {
	say func(format string, args ...any)

	mu      sync.Mutex // guards following; held across short messages to the guard
	process *os.Process
	starts  int
	in      *os.File
	out     *os.File
	group   int
	killAt  int64     // CLOCK_BOOTTIME; 0 for none yet
	told    time.Time // of the oldest message that the guard may not have read
	done    bool
	watch   sync.WaitGroup // for the goroutine that waits for the guard
}

// maxGuards bounds the guards of one run, in case each dies at once.
const maxGuards = 64

// guardPatience is how long docent waits for a guard that does not read or answer.
const guardPatience = time.Second

// newGuardian starts a guard for the group.
func newGuardian(group int, say func(format string, args ...any)) (*guardian, error) {
	g := &guardian{say: say, group: group}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.startLocked(); err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	return g, nil
}

// startLocked starts a guard for the group. newGuardian and watchLoop call it.
func (g *guardian) startLocked() error {
	if g.starts++; g.starts > maxGuards {
		return fmt.Errorf("%d guards have died", maxGuards)
	}
	theirs, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	out, answer, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	defer answer.Close()
	argv := []string{"docent", guardCommand, strconv.Itoa(g.group), strconv.FormatInt(g.killAt, 10)}
	started, err := os.StartProcess("/proc/self/exe", argv, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{theirs, nil, os.Stderr, answer}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		in.Close()
		out.Close()
		return err
	}
	g.process, g.in, g.out = started, in, out
	g.watch.Add(1)
	go g.watchLoop(g.process)
	return nil
}

// watchLoop waits for one guard and starts the next one if that guard died. startLocked starts it,
// finish waits for it.
func (g *guardian) watchLoop(p *os.Process) {
	defer g.watch.Done()
	_, _ = p.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return
	}
	g.in.Close()
	g.out.Close()
	if err := g.startLocked(); err != nil {
		g.say("the guard has died, and another one can't be started: %v", err)
		return
	}
	g.say("the guard had died: another one is at work")
}

// kill passes the time for KILL to the guard. If the guard has died, its successor gets it. A guard
// that does not read, because it is stopped, is replaced: it watches nothing, and if it is continued,
// it acts by an old time.
func (g *guardian) kill(at time.Time) {
	killAt := bootTime() + int64(time.Until(at))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.killAt = killAt
	if unread(g.in) == 0 {
		g.told = time.Now()
	} else if time.Since(g.told) > guardPatience {
		_ = g.process.Kill()
		return
	}
	_ = g.sendLocked(fmt.Sprint(guardKill, " ", killAt)) // a guard that has died has a successor
}

// sendLocked sends the message. It does not wait for a guard that is stopped.
func (g *guardian) sendLocked(message string) error {
	if err := g.in.SetWriteDeadline(time.Now().Add(guardPatience)); err != nil { // a pipe has deadlines
		return err
	}
	_, err := fmt.Fprintln(g.in, message)
	return err
}

// unread returns how many bytes of the pipe its reader has not read.
func unread(pipe *os.File) int {
	n := 0
	conn, err := pipe.SyscallConn()
	if err != nil {
		return n
	}
	_ = conn.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// finish tells the guard that the group is gone, and returns when the guard killed it; zero if it did
// not. It returns when the guard knows or has ended, so that the group's number may be used again.
func (g *guardian) finish() (killed time.Time) {
	g.mu.Lock()
	g.done = true
	_ = g.sendLocked(guardDone) // without it there is no answer
	_ = g.out.SetReadDeadline(time.Now().Add(guardPatience))
	answer, err := io.ReadAll(g.out) // nothing, if the guard has died
	if err != nil {
		_ = g.process.Kill() // it is stopped
	}
	g.in.Close()
	g.out.Close()
	g.mu.Unlock()
	g.watch.Wait()
	word, at, _ := strings.Cut(strings.TrimSpace(string(answer)), " ")
	if word == guardKilled {
		number, _ := strconv.ParseInt(at, 10, 64)
		killed = time.Now().Add(time.Duration(number - bootTime()))
	}
	return killed
}

// pid returns the guard's process id.
func (g *guardian) pid() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.process.Pid
}
