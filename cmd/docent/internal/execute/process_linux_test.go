package execute_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// short is a session timeout that lets a lease end within a test.
const short = "4s"

// await waits until the file has a line, and returns its first one.
func await(t *testing.T, path string) string {
	t.Helper()
	eventually(t, "a line in "+path, func() bool { return strings.Contains(contents(path), "\n") })
	line, _, _ := strings.Cut(contents(path), "\n")
	return line
}

// The table of signals by kinds of commands: which processes live on, and the exit code.
func TestSignal(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	kinds := map[string]string{ // each writes its id, and that of a child if it has one
		"plain":        `echo $$ >%s; exec sleep 60`,
		"with a child": `sleep 60 & echo $$ $! >%s; wait`,
		"deaf":         `trap '' INT TERM HUP QUIT; sleep 60 & echo $$ $! >%s; wait; wait; while :; do sleep 1; done`,
		"polite":       `trap 'kill $!; exit 5' TERM; sleep 60 & echo $$ $! >%s; wait`,
		"double fork":  `(sleep 60 & echo $! >%[1]s.2); echo $$ $(cat %[1]s.2) >%[1]s; sleep 60`,
		"ended":        `sleep 60 & echo $! >%s; exit 7`,
		// Each of these has a process group, or a session, that is not the command's.
		"a group of its own": `timeout 60 sh -c 'echo $PPID $$ >%s; sleep 60'; true`,
		"job control":        `exec bash -mc 'sleep 60 & echo $$ $! >%s; wait'`,
		"a daemon":           `setsid -f sh -c 'echo $$ >%[1]s.2; exec sleep 60' >/dev/null 2>&1 </dev/null; while ! [ -s %[1]s.2 ]; do sleep 0.01; done; echo $$ $(cat %[1]s.2) >%[1]s; exec sleep 60`,
	}
	for _, c := range []struct {
		kind string
		send []syscall.Signal
		code int
	}{
		{"plain", []syscall.Signal{syscall.SIGTERM}, 143},
		{"plain", []syscall.Signal{syscall.SIGINT}, 130},
		{"plain", []syscall.Signal{syscall.SIGHUP}, 129},
		{"plain", []syscall.Signal{syscall.SIGUSR1}, 138},
		{"plain", []syscall.Signal{syscall.SIGTSTP, syscall.SIGTERM}, 143},
		{"with a child", []syscall.Signal{syscall.SIGTERM}, 143},
		{"deaf", []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGINT}, 137},
		{"polite", []syscall.Signal{syscall.SIGTERM}, 5},
		{"double fork", []syscall.Signal{syscall.SIGTERM}, 143},
		{"plain", []syscall.Signal{syscall.SIGQUIT}, 131},
		{"plain", []syscall.Signal{syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGUSR2}, 140},
		{"ended", []syscall.Signal{syscall.SIGTERM}, 7},
		{"a group of its own", []syscall.Signal{syscall.SIGTERM}, 143},
		{"job control", []syscall.Signal{syscall.SIGTERM}, 143},
		{"a daemon", []syscall.Signal{syscall.SIGINT}, 130},
		{"a daemon", []syscall.Signal{syscall.SIGHUP}, 129},
	} {
		t.Run(fmt.Sprint(c.kind, c.send), func(t *testing.T) {
			t.Parallel()
			pids := tempFile(t)
			p := start(t, addr, fmt.Sprintf("/signal/%s%d", strings.ReplaceAll(c.kind, " ", ""), c.code), "--", "sh", "-c", fmt.Sprintf(kinds[c.kind], pids))
			list := await(t, pids)
			if c.kind == "ended" { // it has written the line before
				eventually(t, "docent sees its end", func() bool { return strings.Contains(p.err.String(), "and left behind") })
			}
			for _, sig := range c.send {
				must.OK(t, p.Process.Signal(sig))
				<-time.After(20 * time.Millisecond) // signals of one number may merge
			}
			status := p.concludes(t, c.kind, c.code, "done", "")
			if c.code > 128 && (status.Child.Signal == nil || status.Child.Code != nil) {
				t.Errorf("the command's end by a signal is missing: %+v", status.Child)
			}
			for pid := range strings.FieldsSeq(list) {
				if alive(pid) {
					t.Errorf("process %s of %s lives on", pid, list)
				}
			}
		})
	}
}

// The lock is held while a process of the command runs, in whatever group or session. With --leftovers
// ignore docent names those that run on.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for where, begin := range map[string]string{"group": "sh -c '%s' sh \"$pid\" >/dev/null 2>&1 </dev/null &", "session": "setsid -f sh -c '%s' sh \"$pid\" >/dev/null 2>&1 </dev/null"} {
		for policy, lives := range map[string]bool{"wait": false, "kill": false, "ignore": true} {
			t.Run(where+" "+policy, func(t *testing.T) {
				t.Parallel()
				pid := tempFile(t)
				script := "pid=" + quoted(pid) + "; " + fmt.Sprintf(begin, `echo $$ >"$1"; exec sleep 60`) + "\nwhile ! [ -s \"$pid\" ]; do sleep 0.01; done; exit 3"
				path := "/leftovers/" + where + policy
				p := start(t, addr, "--leftovers", policy, path, "--", "sh", "-c", script)
				child := await(t, pid)
				if policy == "wait" {
					eventually(t, "docent names the child", func() bool { return strings.Contains(p.err.String(), "left behind: sleep (pid "+child+")") })
					run(t, addr, "-n", path, "--", "true").ends(t, "another exec", 123)
					must.OK(t, p.Process.Signal(syscall.SIGTERM))
				}
				code := p.end(t)
				if named := strings.Contains(p.err.String(), "runs on, and is not under the lock: "); code != 3 || alive(child) != lives || named != lives {
					t.Errorf("exit code %d; the child lives: %v\n%s", code, alive(child), p.err.String())
				}
				if number, err := strconv.Atoi(child); err == nil && lives {
					_ = syscall.Kill(number, syscall.SIGKILL)
				}
			})
		}
	}
}

// A signal ends the wait for the connection, too.
func TestSignal_ends_the_wait_for_the_connection(t *testing.T) {
	t.Parallel()
	p := start(t, "127.0.0.1:1", "--timeout", "60s", "/a", "--", "true")
	eventually(t, "docent waits", func() bool { return len(childrenOf(workerOf(p))) == 1 }) // the starter
	must.OK(t, p.Process.Signal(syscall.SIGTERM))
	p.concludes(t, "it", 143, "interrupted", "")
}

// The command reads all of standard input, of which docent takes nothing, and all that it writes arrives.
func TestStreams_are_inherited(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	text := strings.Repeat("0123456789abcde\n", 10<<16)
	cmd := apptest.Program(os.Args[0], "exec", "--connect", addr, "/streams", "--", "cat")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.Output(); err != nil || string(out) != text {
		t.Errorf("%v: %d bytes, want %d", err, len(out), len(text))
	}
}

// A command that stops again is continued a second later, however many processes it has.
func TestStopped_command_of_many_processes(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	stop := "kill -STOP $$; date +%s%N; "
	p := run(t, addr, "--leftovers", "kill", "/stopped/many", "--", "sh", "-c",
		"for i in $(seq 1000); do sleep 300 & done; sleep 3; "+stop+stop+stop+"exit 4")
	p.ends(t, "it", 4)
	var times []int
	for line := range strings.Lines(p.out.String()) {
		times = append(times, must.Get(strconv.Atoi(strings.TrimSpace(line)))(t))
	}
	if took := time.Duration(times[2] - times[0]); took > 12*time.Second {
		t.Errorf("continued twice in %v, want two seconds", took)
	}
}

// A guard that is stopped at the command's end is continued: the user waits for it.
func TestGuard_that_is_stopped_at_the_end(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	p := start(t, addr, "/guard/end", "--", "sh", "-c", "read -r _ _ _ guard _ </proc/$PPID/stat; kill -STOP $guard; exit 6")
	p.concludes(t, "it", 6, "done", "")
}

// docent's own processes are of the program that runs, although its file is gone, as after an upgrade.
func TestProgram_whose_file_is_gone(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	copied := tempFile(t)
	cmd := apptest.Program("sh", "-c", `cp "$0" "$1"; exec 9<"$1"; rm "$1"; shift; exec /proc/self/fd/9 "$@"`,
		os.Args[0], copied, "exec", "--connect", addr, "--no-cgroup", "/gone", "--", "sh", "-c", "exit 5")
	p := launch(t, cmd)
	p.ends(t, "it", 5)
}

func TestZombies_are_reaped(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	ready := tempFile(t)
	p := start(t, addr, "/zombies", "--", "sh", "-c", "for i in 1 2 3 4 5; do (setsid -f true); done; sleep 0.2; echo >"+quoted(ready)+"; exec sleep 60")
	await(t, ready)
	eventually(t, "no zombie is left", func() bool {
		out, err := exec.Command("ps", "-o", "stat=", "--ppid", fmt.Sprint(workerOf(p))).Output()
		return err == nil && !strings.Contains(string(out), "Z")
	})
}

// The guard, which the user started, is killed, and docent may be stopped. docent kills all that the command has started,
// in whatever group and session it is, and releases the lock.
func TestKilled(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for name, stop := range map[string]bool{"guard": false, "guard of a docent that is stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "/killed/" + strings.ReplaceAll(name, " ", "-")
			p, m := beginMarked(t, addr, "--session-timeout", "40s", path)
			if stop {
				must.OK(t, syscall.Kill(workerOf(p), syscall.SIGSTOP))
			}
			must.OK(t, p.Process.Kill())
			eventually(t, "all has ended", func() bool { return !m.lives(t) })
			p.ends(t, "it", -1)
			run(t, addr, "-w", "15s", path, "--", "true").ends(t, "the next one", 0) // long before the session's end
		})
	}
}

// An outage that lasts stops the command before the lease ends; a shorter one does not disturb it.
func TestLoss(t *testing.T) {
	t.Parallel()
	cut := func(_ *testing.T, srv *zkserver.Server) { srv.Refuse(); srv.Cut() }
	for name, c := range map[string]struct {
		args    []string
		fault   func(t *testing.T, srv *zkserver.Server)
		outcome string
		reason  string
		warned  bool
		killed  bool
	}{
		"polite":        {nil, cut, "lost", "lease_deadline", true, false},
		"deaf":          {[]string{"--owner", "deaf"}, cut, "lost", "lease_deadline", true, true},
		"frozen server": {nil, func(_ *testing.T, srv *zkserver.Server) { srv.Freeze() }, "lost", "lease_deadline", true, false},
		"on suspend":    {[]string{"--on-suspend", "stop"}, cut, "lost", "suspended", false, true},
		"expired":       {nil, expire, "lost", "session_expired", false, true},
		"short outage": {nil, func(t *testing.T, srv *zkserver.Server) {
			cut(t, srv)
			<-time.After(500 * time.Millisecond)
			srv.Accept()
		}, "done", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, addr := serve(t)
			rounds, code := 400, 121
			if c.outcome == "done" {
				rounds, code = 40, 0
			}
			work := fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 0.1; i=$((i+1)); done", rounds)
			if name == "deaf" {
				work = "trap '' TERM; " + work
			}
			p, _ := begin(t, addr, "", work, append(c.args, "--session-timeout", short, "/loss")...)
			c.fault(t, srv)
			status := p.concludes(t, name, code, c.outcome, c.reason)
			if (status.WarnedAt != nil) != c.warned || (status.KilledAt != nil) != c.killed {
				t.Errorf("status %+v\n%s", status, p.err.String())
			}
		})
	}
}

// expire ends all sessions.
func expire(t *testing.T, srv *zkserver.Server) {
	t.Helper()
	for _, s := range srv.Sessions() {
		must.OK(t, srv.Expire(s.ID))
	}
}
