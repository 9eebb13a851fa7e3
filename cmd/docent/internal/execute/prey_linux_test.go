package execute_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
)

// preyVariable makes the test binary a program that is hard to end: see preys.
const preyVariable = "DOCENT_TEST_PREY"

// preyLife is how long a prey lives if no test ends it.
const preyLife = 60 * time.Second

// preys are the programs of [preyVariable]. None returns before its life is over, and all ignore TERM.
func preys() map[string]func() {
	return map[string]func(){
		"sleeps":           func() { <-time.After(preyLife) },
		"leader has ended": endLeader,
		"thread execs":     func() { go execInThread(); endLeader() },
		"links":            link,
	}
}

// hunted is the process of [preyVariable].
func hunted(kind string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	preys()[kind]()
}

// endLeader ends the main thread, and only that: the state of the process is Z, while other threads run.
func endLeader() {
	go func() { <-time.After(preyLife); os.Exit(0) }()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// execInThread has a thread that is not the main one become another program.
func execInThread() {
	runtime.LockOSThread()
	for unix.Gettid() == unix.Getpid() {
		<-time.After(time.Millisecond)
	}
	eventuallyEnded(os.Getpid())
	sleep, err := exec.LookPath("sleep")
	if err == nil {
		err = syscall.Exec(sleep, []string{"sleep", "60"}, os.Environ())
	}
	panic(err)
}

// eventuallyEnded waits until the main thread of the process is a zombie.
func eventuallyEnded(pid int) {
	for !strings.Contains(contents(fmt.Sprintf("/proc/%d/stat", pid)), ") Z ") {
		<-time.After(time.Millisecond)
	}
}

// link starts its like in a session of its own, and ends, again and again. It is the chain's only process, and has
// few instructions between two forks: nothing that may allocate, because a fork has one thread.
func link() {
	end := time.Now().Add(preyLife).Unix()
	var now unix.Timespec
	for int64(now.Sec) < end { //nolint:unconvert // 32 bits on some systems
		pid, _, _ := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if pid != 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&now)), 0)
	}
}

// A mark is a file that each process of a command has open with a lock of the system, in whatever namespace it is
// and whatever /proc says of it.
type mark string

// newMark returns a mark, and the beginning of a shell script that sets it.
func newMark(t *testing.T) (mark, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mark")
	return mark(path), "exec 9>" + quoted(path) + "; flock -s 9; "
}

// beginMarked starts "docent exec" with the arguments, and a command that starts processes in other groups and sessions.
// All have the mark.
func beginMarked(t *testing.T, addr string, args ...string) (*program, mark) {
	t.Helper()
	m, set := newMark(t)
	ready := tempFile(t)
	p := start(t, addr, append(args, "--", "sh", "-c", set+"sleep 60 & timeout 60 sleep 60 & setsid sleep 60 & echo >"+quoted(ready)+"; wait")...)
	await(t, ready)
	return p, m
}

// prey returns the shell's command that starts a prey.
func prey(kind string) string {
	return fmt.Sprintf("env -u %s %s='%s' %s", apptest.ProgramVariable, preyVariable, kind, quoted(os.Args[0]))
}

// The kinds of programs that are hard to see or to end, each as a script whose "%s" is where it tells that all run.
func hardToEnd() map[string]string {
	four := strings.Repeat("("+prey("links")+" & ) ; ", 4)
	return map[string]string{
		"main thread has ended":       prey("leader has ended") + " & sleep 0.3; %s; wait",
		"the same in a session":       "setsid " + prey("leader has ended") + " & sleep 0.3; %s; wait",
		"the same in a daemon":        "(setsid " + prey("leader has ended") + " & ); sleep 0.3; %s; exec sleep 60",
		"a thread became a program":   "setsid " + prey("thread execs") + " & sleep 0.3; %s; wait",
		"a chain":                     prey("links") + " & sleep 0.1; %s; exec sleep 60",
		"four chains":                 four + "sleep 0.1; %s; exec sleep 60",
		"a stopped one in a session":  "setsid sh -c 'kill -STOP $$' & sleep 0.1; %s; wait",
		"a pid namespace":             unshare() + " -p -f " + prey("sleeps") + " & sleep 0.3; %s; wait",
		"a pid namespace of a daemon": "(setsid " + unshare() + " -p -f sh -c '(setsid " + strings.ReplaceAll(prey("sleeps"), "'", "") + " & ); sleep 60' & ); sleep 0.3; %s; exec sleep 60",
		"a user namespace":            "setsid unshare -U -r " + prey("sleeps") + " & sleep 0.3; %s; wait",
		"a mount namespace":           "setsid " + unshare() + " -m " + prey("sleeps") + " & sleep 0.3; %s; wait",
	}
}

// unshare is the command that makes namespaces: only root does without one for users.
func unshare() string {
	if os.Getuid() == 0 {
		return "unshare"
	}
	return "unshare -U -r"
}

// needNamespaces skips the test if this process may not make a namespace.
func needNamespaces(t *testing.T) {
	t.Helper()
	if !namespaces() {
		apptest.Missing(t, "no namespaces may be made here")
	}
}

// canMakeCgroup reports whether docent exec runs its command in a cgroup of its own.
func canMakeCgroup(t *testing.T) bool {
	t.Helper()
	_, addr := serve(t)
	p := startWithCgroup(t, addr, "/cgroup", "--", "cat", "/proc/self/cgroup")
	p.end(t)
	return strings.Contains(p.out.String(), "/docent-")
}

// The cgroup of a docent whose processes were both killed does not stay: the next docent removes it, and none that is used.
func TestCgroup_that_was_left(t *testing.T) {
	if !canMakeCgroup(t) {
		apptest.Missing(t, "no cgroup may be made here")
	}
	_, addr := serve(t)
	begin := func(path string) (p *program, dir string) {
		ready := tempFile(t)
		p = startWithCgroup(t, addr, path, "--", "sh", "-c", "grep ^0:: /proc/self/cgroup >"+quoted(ready)+"; exec sleep 60")
		name := regexp.MustCompile("docent-[A-Z0-9]+").FindString(await(t, ready))
		out, err := exec.Command("find", "/sys/fs/cgroup", "-name", name).Output()
		if dir = strings.TrimSpace(string(out)); dir == "" {
			t.Fatalf("%q: %v", name, err)
		}
		return p, dir
	}
	used, usedDir := begin("/used")
	left, leftDir := begin("/left")
	worker := workerOf(left)
	_ = left.Process.Signal(syscall.SIGSTOP) // so that it does nothing when its child ends
	must.OK(t, errors.Join(syscall.Kill(worker, syscall.SIGKILL), left.Process.Kill()))
	left.end(t)
	third, thirdDir := begin("/next")
	exists := func(dir string) bool { _, err := os.Stat(dir); return err == nil }
	if exists(leftDir) || !exists(usedDir) || !exists(thirdDir) {
		t.Errorf("the one that was left exists: %v; those that are used: %v, %v", exists(leftDir), exists(usedDir), exists(thirdDir))
	}
	for _, p := range []*program{used, third} {
		_ = p.Process.Signal(syscall.SIGTERM)
		p.end(t)
	}
	if exists(usedDir) || exists(thirdDir) {
		t.Error("a cgroup stays")
	}
}

// Whatever a command has started ends with docent: when the lock is lost, when one of docent's two processes is
// killed, and with --leftovers kill. Each with a cgroup and without one.
func TestKill_ends_what_is_hard_to_end(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	withCgroup := canMakeCgroup(t)
	if !withCgroup {
		t.Log("SKIPPED, NOT TESTED: with a cgroup")
	}
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	acts := map[string]func(p *program, node string) error{
		"the lock is lost":    func(_ *program, node string) error { return c.Delete(t.Context(), node) },
		"docent is killed":    func(p *program, _ string) error { return syscall.Kill(workerOf(p), syscall.SIGKILL) },
		"the guard is killed": func(p *program, _ string) error { return p.Process.Kill() },
		"a second INT": func(p *program, _ string) error {
			_ = p.Process.Signal(syscall.SIGINT)
			<-time.After(20 * time.Millisecond) // signals of one number may merge
			return p.Process.Signal(syscall.SIGINT)
		},
	}
	path := 0
	for kind, script := range hardToEnd() {
		for how, act := range acts {
			for _, cgroup := range []bool{false, true} {
				if cgroup && !withCgroup {
					continue
				}
				t.Run(fmt.Sprint(kind, "/", how, "/cgroup ", cgroup), func(t *testing.T) {
					begin := start
					if cgroup {
						begin = startWithCgroup
					}
					m, set := newMark(t)
					node := tempFile(t)
					path++
					p := begin(t, addr, fmt.Sprintf("/hard/%d", path), "--", "sh", "-c", set+"trap '' INT; "+fmt.Sprintf(script, "echo $DOCENT_NODE >"+quoted(node)))
					must.OK(t, act(p, await(t, node)))
					p.end(t)
					if how == "the guard is killed" { // its child ends after it
						eventually(t, "all has ended", func() bool { return !m.lives(t) })
					} else if m.lives(t) {
						t.Errorf("docent has ended, and something of the command lives\n%s", p.err.String())
					}
				})
			}
		}
	}
}

// Leftovers that are deaf get KILL after the grace, and that is no loss of the lock. A process whose main thread has
// ended is a leftover like any other.
func TestLeftovers_that_are_deaf(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	m, set := newMark(t)
	p := run(t, addr, "--leftovers", "kill", "--grace", "50ms", "/thread", "--", "sh", "-c",
		set+"setsid "+prey("leader has ended")+" >/dev/null 2>&1 & sleep 0.3; exit 3")
	if status := p.concludes(t, "it", 3, "done", ""); status.KilledAt == nil || m.lives(t) {
		t.Errorf("status %+v; it lives: %v\n%s", status, m.lives(t), p.err.String())
	}
}

// Many leftovers cost docent little: it waits for the end of its children, and does not poll.
func TestLeftovers_that_are_many_cost_little(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	ready := tempFile(t)
	p := start(t, addr, "/many", "--", "sh", "-c", "i=0; while [ $i -lt 400 ]; do sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; echo >"+quoted(ready))
	await(t, ready)
	eventually(t, "docent awaits them", func() bool { return strings.Contains(p.err.String(), "left behind") })
	worker := workerOf(p)
	before := processorTime(t, worker)
	<-time.After(4 * time.Second)
	if used := processorTime(t, worker) - before; used > 400*time.Millisecond {
		t.Errorf("4s of waiting for 400 leftovers took %v of processor time, want a tenth at most", used)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.end(t)
}

// processorTime returns the time that the process has had.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat := contents(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	user := must.Get(strconv.Atoi(fields[11]))(t)
	system := must.Get(strconv.Atoi(fields[12]))(t)
	return time.Duration(user+system) * 10 * time.Millisecond
}
