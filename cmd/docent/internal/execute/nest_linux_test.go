package execute_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// nested returns the arguments of depth docent execs, one within the other, that run the script. The wrapper is a
// shell's words for each further one, with "%s" for its own.
func nested(addr, path string, depth int, wrapper, script string, flags ...string) []string {
	args := append(append([]string{}, flags...), path+"-1", "--", "sh", "-c", script)
	for level := 2; level <= depth; level++ {
		var words []string
		for _, word := range append([]string{os.Args[0], "exec", "--connect", addr, "--no-cgroup"}, args...) {
			words = append(words, quoted(word))
		}
		args = append(append([]string{}, flags...), fmt.Sprintf("%s-%d", path, level), "--", "sh", "-c", fmt.Sprintf(wrapper, strings.Join(words, " ")))
	}
	return args
}

// A signal reaches the innermost of nested execs once, however it is sent: to docent, or to docent's process group.
// What the outer ones run gets it once, too.
func TestNested_execs_pass_a_signal_on_once(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	n := 0
	for name, c := range map[string]struct {
		wrapper string
		flags   []string
	}{
		"a shell":       {"%s; exit $?", nil},
		"become":        {"exec %s", nil},
		"a session":     {"setsid -w %s; exit $?", nil},
		"job control":   {"set -m; %s; exit $?", nil},
		"without guard": {"%s; exit $?", []string{"--no-guard"}},
	} {
		for depth := 1; depth <= 3; depth++ {
			for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
				n++
				t.Run(fmt.Sprint(name, " ", depth, " ", sig), func(t *testing.T) {
					t.Parallel()
					got, ready, end := tempFile(t), tempFile(t), tempFile(t)
					script := fmt.Sprintf("trap 'echo got >>\"%s\"' INT TERM HUP QUIT; echo >%s; while ! [ -e %s ]; do sleep 0.05; done; exit 9", got, quoted(ready), quoted(end))
					args := nested(addr, fmt.Sprintf("/nested/%d", n), depth, "trap : INT TERM HUP QUIT; "+c.wrapper, script, c.flags...)
					p := start(t, addr, args...)
					await(t, ready)
					must.OK(t, p.Process.Signal(sig))
					eventually(t, "the signal arrives", func() bool { return contents(got) != "" })
					<-time.After(300 * time.Millisecond) // for a second one
					must.OK(t, os.WriteFile(end, nil, 0o600))
					if code := p.end(t); code != 9 && name != "become" || contents(got) != "got\n" {
						t.Errorf("exit code %d, want 9; the program got %q\n%s", code, contents(got), p.err.String())
					}
				})
			}
		}
	}
}

// A signal is not lost on what another process has started that ends at it, while docent looks what there is.
func TestSignal_below_a_process_that_ends_at_it(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for i := range 40 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			got, ready := tempFile(t), tempFile(t)
			inner := fmt.Sprintf("trap 'echo got >>\"%s\"; exit' TERM; echo >%s; while :; do sleep 0.05; done", got, quoted(ready))
			p := start(t, addr, fmt.Sprint("/ends/", i), "--", "setsid", "-w", "sh", "-c", inner) // setsid ends, and not sh
			await(t, ready)
			must.OK(t, p.Process.Signal(syscall.SIGTERM))
			if p.end(t); contents(got) != "got\n" {
				t.Errorf("what runs in the session got %q", contents(got))
			}
		})
	}
}

// A program that has docent's name and is no docent exec passes nothing on: what it runs gets the signal from docent.
func TestSignal_below_another_program_of_docents_name(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	got, ready, other := tempFile(t), tempFile(t), filepath.Join(t.TempDir(), "docent")
	must.OK(t, os.Symlink("/bin/sh", other))
	inner := fmt.Sprintf("trap 'echo got >>\"%s\"; exit' TERM; echo >%s; while :; do sleep 0.05; done", got, quoted(ready))
	p := start(t, addr, "/other", "--", "setsid", "-w", other, "-c", "trap : TERM; setsid -w sh -c "+quoted(inner)+"; wait")
	await(t, ready)
	must.OK(t, p.Process.Signal(syscall.SIGTERM))
	eventually(t, "the signal arrives", func() bool { return contents(got) == "got\n" })
	p.end(t)
}

// A second INT ends nested execs, too.
func TestNested_execs_end_at_a_second_INT(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for depth := 1; depth <= 3; depth++ {
		t.Run(strconv.Itoa(depth), func(t *testing.T) {
			t.Parallel()
			m, set := newMark(t)
			ready := tempFile(t)
			p := start(t, addr, nested(addr, fmt.Sprintf("/twice/%d", depth), depth, "trap : INT; %s; exit $?", set+"trap '' INT; echo >"+quoted(ready)+"; sleep 60; sleep 60")...)
			await(t, ready)
			for range 2 {
				must.OK(t, p.Process.Signal(syscall.SIGINT))
				<-time.After(100 * time.Millisecond) // signals of one number may merge
			}
			if p.ends(t, "it", 137); m.lives(t) {
				t.Errorf("it lives\n%s", p.err.String())
			}
		})
	}
}

// A shell sends KILL or STOP to a job, which is docent's process group. The child has a group of its own: it ends the
// command, or continues the guard.
func TestSignals_to_docents_process_group(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGINT, syscall.SIGTERM} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			m, set := newMark(t)
			got, ready := tempFile(t), tempFile(t)
			status := tempFile(t)
			cmd := apptest.Program(os.Args[0], "exec", "--connect", addr, "--no-cgroup", "--session-timeout", short, "--leftovers", "kill", "--status-file", status, fmt.Sprintf("/group/%d", sig), "--",
				"sh", "-c", set+"trap 'echo got >>\""+got+"\"; exit 9' INT TERM; setsid sleep 60 & echo >"+quoted(ready)+"; while :; do sleep 0.05; done")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			p := launch(t, cmd)
			await(t, ready)
			must.OK(t, syscall.Kill(-p.Process.Pid, sig))
			switch sig {
			case syscall.SIGKILL:
				eventually(t, "all has ended", func() bool { return !m.lives(t) })
				run(t, addr, "-w", "15s", fmt.Sprintf("/group/%d", sig), "--", "true").ends(t, "the next one", 0)
				eventually(t, "the status says it", func() bool { return strings.Contains(contents(status), `"guard_ended"`) })
				return
			case syscall.SIGSTOP:
				eventually(t, "docent says so", func() bool { return strings.Contains(p.err.String(), "it is continued") })
				must.OK(t, p.Process.Signal(syscall.SIGTERM))
			}
			if p.ends(t, "it", 9); contents(got) != "got\n" || m.lives(t) {
				t.Errorf("the command got %q; it lives: %v\n%s", contents(got), m.lives(t), p.err.String())
			}
		})
	}
}

// A docent that dies, of whatever signal, is docent's failure: the code is never that of the program. The status says
// it, and nothing of the command lives.
func TestDocent_dies_by_each_signal(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for _, sig := range []syscall.Signal{
		syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS, syscall.SIGSTKFLT, syscall.SIGKILL,
	} {
		for _, phase := range []string{"works", "waits"} {
			t.Run(fmt.Sprint(sig, " ", phase), func(t *testing.T) {
				t.Parallel()
				path := fmt.Sprintf("/dies/%d-%s", sig, phase)
				p, m := beginMarked(t, addr, path)
				victim := p
				if phase == "waits" {
					victim = start(t, addr, "-v", path, "--", "true")
					eventually(t, "it waits", func() bool { return strings.Contains(victim.err.String(), "waiting behind") })
				}
				must.OK(t, syscall.Kill(workerOf(victim), sig))
				status := victim.concludes(t, "it", 125, "failed", "docent_ended")
				if killed := status.KilledAt != nil && status.Child.Signal != nil && *status.Child.Signal == "KILL"; killed != (phase == "works") || len(status.NotEnded) > 0 {
					t.Errorf("status %+v", status)
				}
				if phase == "works" && m.lives(t) {
					t.Errorf("something of the command lives\n%s", p.err.String())
				}
				said := victim.err.String()
				if !strings.Contains(said, "guard: docent ended ") || phase == "works" && !strings.Contains(said, ": KILL to the command; its lock ends with the session") {
					t.Errorf("the guard says %q", said)
				}
			})
		}
	}
}

// A docent that is stopped ends as the user asks, and by itself after the time for KILL: the guard kills all that the
// command has started before another client is granted the lock.
func TestDocent_that_is_stopped_ends(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, zkserver.WithTick(500*time.Millisecond))
	stop := func(p *program) error { return syscall.Kill(workerOf(p), syscall.SIGSTOP) }
	for name, act := range map[string]func(p *program) error{
		"TERM":             func(p *program) error { return errors.Join(stop(p), p.Process.Signal(syscall.SIGTERM)) },
		"at its time":      stop,
		"held by a tracer": func(p *program) error { return traceProcess(workerOf(p)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, timeout := "/stopped/"+strings.ReplaceAll(name, " ", "-"), short
			if name == "TERM" {
				timeout = "10s"
			}
			p, m := beginMarked(t, addr, "--session-timeout", timeout, path)
			begin := time.Now()
			must.OK(t, act(p))
			if name == "TERM" {
				if p.concludes(t, name, 143, "done", ""); m.lives(t) {
					t.Errorf("it lives\n%s", p.err.String())
				}
				return
			}
			next := run(t, addr, "-w", "30s", path, "--", "flock", "-n", string(m), "true")
			next.ends(t, "the next one, which fails if anything lives", 0)
			killed := p.concludes(t, name, 121, "lost", "lease_deadline").KilledAt
			if killed == nil || killed.After(begin.Add(4*time.Second)) || killed.After(*next.readStatus(t).Granted) {
				t.Errorf("stopped at %v, killed at %v", begin, killed)
			}
		})
	}
}

// traceProcess has a further process stop the process as a debugger does: CONT does not continue it.
func traceProcess(pid int) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", debuggerVariable, pid))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // it ends with the process that it traces
	_, err = out.Read(make([]byte, 1))
	return err
}

// debuggerVariable makes the test binary a debugger of the process.
const debuggerVariable = "DOCENT_TEST_DEBUG"

// debug is the process of [debuggerVariable].
func debug(pid int) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, thread := range threads {
		if number, fault := strconv.Atoi(filepath.Base(thread)); err == nil && fault == nil {
			err = unix.PtraceAttach(number)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("stopped")
	for alive(strconv.Itoa(pid)) {
		var status unix.WaitStatus
		_, _ = unix.Wait4(-1, &status, unix.WALL|unix.WNOHANG, nil) // and continues nothing
		<-time.After(10 * time.Millisecond)
	}
}
