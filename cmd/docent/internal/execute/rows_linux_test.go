package execute_test

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// Another owner has the lock: each kind of lock, with one path or more, by each way to wait.
func TestConflict_of_each_kind(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for name, c := range map[string]struct {
		holder, other []string
		outcome       string
		code          int
	}{
		"a mutex, -n":            {[]string{"/k/a"}, []string{"-n", "/k/a"}, "held", 123},
		"one of two, -n":         {[]string{"/k/b"}, []string{"-n", "/k/b", "/k/b2"}, "held", 123},
		"one of two, -w":         {[]string{"/k/c"}, []string{"-w", "/k/c2", "/k/c"}, "timeout", 124},
		"a mutex, -n -E 2":       {[]string{"/k/n"}, []string{"-n", "-E", "2", "/k/n"}, "held", 2},
		"one of two, -w -E":      {[]string{"/k/d"}, []string{"-w", "-E", "0", "/k/d2", "/k/d"}, "timeout", 0},
		"a reader for a writer":  {[]string{"--read", "/k/e"}, []string{"--write", "-n", "/k/e"}, "held", 123},
		"a writer for a reader":  {[]string{"--write", "/k/f"}, []string{"--read", "-w", "/k/f"}, "timeout", 124},
		"an unfair mutex, -w":    {[]string{"--exclusive", "/k/g"}, []string{"--exclusive", "-w", "/k/g"}, "timeout", 124},
		"two unfair mutexes, -n": {[]string{"--exclusive", "/k/h"}, []string{"--exclusive", "-n", "/k/h2", "/k/h"}, "held", 123},
		"a semaphore, -w -E":     {[]string{"--semaphore", "1", "/k/i"}, []string{"--semaphore", "1", "-w", "-E", "255", "/k/i"}, "timeout", 255},
		"two semaphores, -n":     {[]string{"--semaphore", "1", "/k/j"}, []string{"--semaphore", "1", "-n", "/k/j2", "/k/j"}, "held", 123},
		"a leader, -w":           {[]string{"--leader", "/k/l"}, []string{"--leader", "-w", "/k/l"}, "timeout", 124},
		"two elections, -w":      {[]string{"--leader", "/k/m"}, []string{"--leader", "-w", "/k/m2", "/k/m"}, "timeout", 124},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holder, _ := begin(t, addr, "", "exec sleep 60", c.holder...)
			ran := tempFile(t)
			other := runBounded(t, addr, c.outcome, append(c.other, "--", "touch", ran)...)
			if status := other.concludes(t, "another exec", c.code, c.outcome, ""); status.Child.Code != nil || status.Fence != "" {
				t.Errorf("%+v\n%s", status, other.err.String())
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the command ran")
			}
			must.OK(t, holder.Process.Signal(syscall.SIGTERM))
			holder.ends(t, "the holder", 143)
			if after := runBounded(t, addr, "done", append(c.other, "--", "true")...); after.readStatus(t).Outcome != "done" {
				t.Errorf("the lock is not free: %s", after.err.String())
			}
		})
	}
}

// The servers grant a shorter session timeout than docent asks for. The default grace fits, and one
// that does not is refused before the lock is awaited.
func TestGrace_and_a_server_that_shortens_the_timeout(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, zkserver.WithSessionTimeouts(time.Second, 4*time.Second))
	for grace, want := range map[string]struct {
		code            int
		outcome, reason string
	}{
		"": {0, "done", ""}, "700ms": {0, "done", ""}, "0s": {0, "done", ""}, "5s": {125, "failed", "usage"},
	} {
		args := []string{"/grace/" + grace + "x", "--", "true"}
		if grace != "" {
			args = append([]string{"--grace", grace}, args...)
		}
		p := run(t, addr, args...)
		p.concludes(t, "--grace "+grace, want.code, want.outcome, want.reason)
		if refused := strings.Contains(p.err.String(), "the servers granted a session timeout of 4s"); refused != (want.code == 125) {
			t.Errorf("--grace %s: %s", grace, p.err.String())
		}
	}
}

// A signal ends an attempt that does not wait, too.
func TestSignal_ends_an_attempt(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"-n", "--reenter"} { // an attempt, and a wait
		srv, addr := serve(t, zkserver.WithCommitTime(2*time.Second))
		ran := tempFile(t)
		p := start(t, addr, flag, "/attempt", "--", "touch", ran)
		eventually(t, "docent has a session", func() bool { return len(srv.Sessions()) == 1 })
		must.OK(t, p.Process.Signal(syscall.SIGTERM))
		status := p.concludes(t, flag, 143, "interrupted", "")
		if _, err := os.Stat(ran); err == nil || status.Child.Code != nil {
			t.Errorf("%s: %+v, the command ran: %v\n%s", flag, status, err == nil, p.err.String())
		}
	}
}

// A program that is asked to release, and does not end, keeps the lock: nothing is lost, so there is no
// KILL.
func TestRevoked_program_that_is_deaf(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	for i, flags := range [][]string{{}, {"--read"}, {"--write"}, {"--leader"}} {
		node, end := tempFile(t), tempFile(t)
		script := "trap 'echo asked' TERM; echo $DOCENT_NODE >" + quoted(node) + "; while ! [ -e " + quoted(end) + " ]; do sleep 0.02; done; exit 4"
		p := start(t, addr, append(flags, "--revocable", "--grace", "50ms", fmt.Sprintf("/deaf/%d", i), "--", "sh", "-c", script)...)
		must.OK(t, lock.Revoke(t.Context(), c, await(t, node)))
		eventually(t, "the program is asked", func() bool { return strings.Contains(p.out.String(), "asked") })
		<-time.After(300 * time.Millisecond) // six times the grace
		must.OK(t, os.WriteFile(end, nil, 0o600))
		if status := p.concludes(t, fmt.Sprint(flags), 4, "revoked", "revoked"); status.KilledAt != nil || status.WarnedAt != nil {
			t.Errorf("%s: %+v\n%s", flags, status, p.err.String())
		}
	}
}

// A second INT ends processes that are left behind, and so does the loss of the lock.
func TestLeftovers_end_early(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	type end struct {
		code            int
		outcome, reason string
	}
	for name, want := range map[string]end{"INT twice": {3, "done", ""}, "loss": {121, "lost", "node_deleted"}} {
		node := tempFile(t)
		script := "sleep 60 >/dev/null 2>&1 & echo $DOCENT_NODE $! >" + quoted(node) + "; exit 3"
		if name == "INT twice" {
			script = "trap '' INT; " + script
		}
		p := start(t, addr, "/early/"+strings.ReplaceAll(name, " ", ""), "--", "sh", "-c", script)
		where, child, _ := strings.Cut(await(t, node), " ")
		eventually(t, "docent names the child", func() bool { return strings.Contains(p.err.String(), "and left behind") })
		switch name {
		case "INT twice":
			must.OK(t, p.Process.Signal(syscall.SIGINT))
			<-time.After(20 * time.Millisecond) // signals of one number may merge
			_ = p.Process.Signal(syscall.SIGINT)
		default:
			must.OK(t, c.Delete(t.Context(), where))
		}
		status := p.concludes(t, name, want.code, want.outcome, want.reason)
		if status.Child.Code == nil || *status.Child.Code != 3 || alive(child) {
			t.Errorf("%s: %+v; the child lives: %v\n%s", name, status, alive(child), p.err.String())
		}
	}
}

// docent may be unable to open further files when the command ends. It then keeps the lock, because it
// does not know whether a process is left.
func TestLeftovers_are_not_missed_without_free_files(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	pid, end := tempFile(t), tempFile(t)
	script := "sleep 60 >/dev/null 2>&1 & echo $! >" + quoted(pid) + "; while ! [ -e " + quoted(end) + " ]; do sleep 0.01; done; exit 3"
	p := start(t, addr, "/files", "--", "sh", "-c", script)
	child := await(t, pid)
	var before unix.Rlimit
	must.OK(t, unix.Prlimit(workerOf(p), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 1 << 10}, &before))
	must.OK(t, os.WriteFile(end, nil, 0o600))
	eventually(t, "docent says so", func() bool { return strings.Contains(p.err.String(), "perhaps others") })
	run(t, addr, "-n", "/files", "--", "true").ends(t, "another exec", 123)
	must.OK(t, unix.Prlimit(workerOf(p), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 10, Max: 1 << 10}, nil))
	if number, err := strconv.Atoi(child); err == nil {
		_ = syscall.Kill(number, syscall.SIGKILL)
	}
	if code := p.end(t); code != 3 || alive(child) {
		t.Errorf("exit code %d, want 3\n%s", code, p.err.String())
	}
}

// The reader of standard error has gone, as with "2>&1 | head -1". The messages of docent are lost, and
// nothing else. CMD's own pipes are as usual.
func TestStandardError_without_a_reader(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for script, want := range map[string]struct {
		code   int
		signal string
	}{
		"kill -STOP $$; exit 4": {4, ""}, // docent says that it continues the command
		"kill -PIPE $$":         {141, "PIPE"},
	} {
		p := &program{status: tempFile(t)}
		p.Cmd = apptest.Program(os.Args[0], "exec", "--connect", addr, "--status-file", p.status, "-v", "/pipe", "--", "sh", "-c", script)
		read, write := must.Get2(os.Pipe())(t)
		read.Close()
		p.Stderr = write
		_ = p.Run()
		write.Close()
		if s := p.concludes(t, script, want.code, "done", ""); (s.Child.Signal != nil) != (want.signal != "") {
			t.Errorf("%s: %+v", script, s)
		}
	}
}

// A shell that becomes docent may have children. They are not the command's.
func TestChildren_of_a_shell_that_becomes_docent(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	cmd := apptest.Program("sh", "-c", `sleep 60 >/dev/null 2>&1 & exec "$0" "$@"`, os.Args[0],
		"exec", "--connect", addr, "/shell", "--", "sh", "-c", "exit 6")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, _ := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the sleep
	if code := cmd.ProcessState.ExitCode(); code != 6 || strings.Contains(string(out), "sleep") {
		t.Errorf("exit code %d, want 6: %s", code, out)
	}
}

// Without standard streams the command runs nevertheless.
func TestStreams_that_are_closed(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	file := tempFile(t)
	cmd := apptest.Program("sh", "-c", `exec "$0" "$@" <&- >&- 2>&-`, os.Args[0], "exec", "--connect", addr, "-v", "/closed", "--", "sh", "-c", "echo ran >"+quoted(file)+"; exit 6")
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 6 || contents(file) != "ran\n" {
		t.Errorf("exit code %d, want 6; %q", code, contents(file))
	}
}

// The reader of standard error does not read, and the pipe is full, as with a pager that waits for a key.
// The command is stopped in time nevertheless, and docent ends when the reader goes on.
func TestStandardError_that_is_full(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	read, write := must.Get2(os.Pipe())(t)
	size := must.Get(unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, 4<<10))(t)
	must.Get(write.Write(make([]byte, size)))(t)
	node := tempFile(t)
	cmd := apptest.Program(os.Args[0], "exec", "--connect", addr, "--no-guard", "-v", "/full", "--",
		"sh", "-c", "echo $DOCENT_NODE $$ >"+quoted(node)+"; exec sleep 60 2>/dev/null")
	cmd.Stderr = write
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	write.Close()
	where, pid, _ := strings.Cut(await(t, node), " ")
	must.OK(t, c.Delete(t.Context(), where))
	eventually(t, "the command ends", func() bool { return !alive(pid) })
	text, err := io.ReadAll(read)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 121 || err != nil || !strings.Contains(string(text), "the lock is lost") {
		t.Errorf("exit code %d, want 121; %v: %q", code, err, text[min(size, len(text)):])
	}
}

// Each process of the chain starts the next one and ends. None lives long, and one lives at any time.
// docent keeps the lock until the last one has ended.
func TestLeftovers_that_start_one_another_are_awaited(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	const links = 300
	last := tempFile(t)
	link := `exec >/dev/null 2>&1; if [ $1 -gt 0 ]; then sh -c "$0" "$0" $(($1 - 1)) & else echo >` + quoted(last) + `; fi`
	p := run(t, addr, "/leftovers/chain", "--", "sh", "-c", link, link, strconv.Itoa(links))
	if contents(last) == "" {
		t.Errorf("docent ended before the last of %d processes\n%s", links, p.err.String())
	}
}

// A process that leaves the command's group while docent looks at it gets the signal: there is no need for KILL.
func TestLeftovers_that_leave_the_group_get_the_signal(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for range 20 {
		p := run(t, addr, "--leftovers", "kill", "--grace", "9s", "/leaving", "--", "sh", "-c",
			"i=0; while [ $i -lt 60 ]; do setsid sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; exit 6")
		if status := p.concludes(t, "it", 6, "done", ""); t.Failed() || status.KilledAt != nil {
			t.Fatalf("killed at %v\n%s", status.KilledAt, p.err.String())
		}
	}
}

// Another client asks for the lock, or deletes the holder's znode.
func TestRevoke_and_deletion(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	revoke := func(node string) error { return lock.Revoke(t.Context(), c, node) }
	remove := func(node string) error { return c.Delete(t.Context(), node) }
	for name, c := range map[string]struct {
		flags   []string
		act     func(node string) error
		code    int
		outcome string
		reason  string
	}{
		"revoked":                {[]string{"--revocable"}, revoke, 143, "revoked", "revoked"},
		"leader revoked":         {[]string{"--leader", "--revocable"}, revoke, 143, "revoked", "revoked"},
		"deleted":                {nil, remove, 121, "lost", "node_deleted"},
		"deleted, with a signal": {[]string{"--on-lost-signal", "TERM"}, remove, 121, "lost", "node_deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "/revoke/" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
			p, node := begin(t, addr, "$DOCENT_NODE", "exec sleep 60", append(c.flags, path)...)
			must.OK(t, c.act(node))
			status := p.concludes(t, name, c.code, c.outcome, c.reason)
			signal := "KILL"
			if c.outcome == "revoked" || len(c.flags) > 0 {
				signal = "TERM"
			}
			if status.Child.Signal == nil || *status.Child.Signal != signal {
				t.Errorf("the command ended by %v, want %s", status.Child, signal)
			}
		})
	}
}
