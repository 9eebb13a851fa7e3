package execute_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/execute"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

// The status file tells a command that returns one of docent's own codes from docent's failure.
func TestExitCode(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	dir := t.TempDir()
	absent := filepath.Join(dir, "absent")
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return path
	}
	// The line of an interpreter has no blanks, and so the interpreter is relative to the folder of the run.
	lost, plain, closed := file("lost", "#!no-such-interpreter/docent\n", 0o755), file("plain", "no program", 0o755), file("closed", "", 0o644)
	for name, c := range map[string]struct {
		args    []string
		code    int
		outcome string // "" if docent could not open the status file
		reason  string
	}{
		"of the command":            {[]string{"--", "sh", "-c", "exit 7"}, 7, "done", ""},
		"of the command, 2":         {[]string{"--", "sh", "-c", "exit 2"}, 2, "done", ""}, // usage, for others than exec
		"of the command, 255":       {[]string{"--", "sh", "-c", "exit 255"}, 255, "done", ""},
		"of the command, 121":       {[]string{"--", "sh", "-c", "exit 121"}, 121, "done", ""}, // these are docent's, too
		"of the command, 125":       {[]string{"--", "sh", "-c", "exit 125"}, 125, "done", ""},
		"of the command, 127":       {[]string{"--", "sh", "-c", "exit 127"}, 127, "done", ""},
		"of its signal":             {[]string{"--", "sh", "-c", "kill -USR1 $$"}, 128 + 10, "done", ""},
		"of a signal of the system": {[]string{"--", "sh", "-c", "kill -SEGV $$"}, 128 + 11, "done", ""},
		"not found":                 {[]string{"--", absent}, 127, "failed", "not_found"},
		"not found by PATH":         {[]string{"--", "docent-no-such-program"}, 127, "failed", "not_found"},
		"no interpreter":            {[]string{"--", lost}, 127, "failed", "not_found"},
		"a directory":               {[]string{"--", dir}, 126, "failed", "not_executable"},
		"not executable":            {[]string{"--", closed}, 126, "failed", "not_executable"},
		"of no format":              {[]string{"--", plain}, 126, "failed", "not_executable"},
		"no command":                {[]string{"--"}, 125, "failed", "usage"},
		"no dashes":                 {[]string{"true"}, 125, "failed", "usage"},
		"unknown flag":              {[]string{"--shell", "--", "true"}, 125, "", ""},
		"a path that is none":       {[]string{"locks", "--", "true"}, 125, "failed", "usage"},
		"the same path twice":       {[]string{"/" + name125, "/" + name125, "--", "true"}, 125, "failed", "usage"},
		"no time to wait":           {[]string{"-w", "0", "--", "true"}, 125, "failed", "usage"}, // -n does not wait
		"a time before now":         {[]string{"-w", "-1", "--", "true"}, 125, "failed", "usage"},
		"a time in seconds":         {[]string{"-w", "10", "--", "true"}, 0, "done", ""}, // as flock and timeout take it
		"semaphore of none":         {[]string{"--semaphore", "0", "--", "true"}, 125, "failed", "usage"},
		"leader without waiting":    {[]string{"--leader", "-n", "--", "true"}, 125, "failed", "usage"},
		"too long a grace":          {[]string{"--grace", "14s", "--", "true"}, 125, "failed", "usage"},
		"unknown ACL":               {[]string{"--acl", "me", "--", "true"}, 125, "failed", "usage"},
		"unwritable status file":    {[]string{"--status-file", filepath.Join(absent, "file"), "--", "true"}, 125, "", ""},
		"a full disk":               {[]string{"--status-file", "/dev/full", "--", "sh", "-c", "exit 7"}, 7, "", ""},
		"nobody at the address":     {[]string{"--connect", "127.0.0.1:1", "--timeout", "200ms", "--", "true"}, 125, "failed", "not_connected"},
		"an auth file that is open": {[]string{"--auth-file", closed, "--", "true"}, 125, "failed", "usage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, addr, append([]string{"/exit/" + strings.ReplaceAll(name, " ", "-")}, c.args...)...)
			if c.outcome == "" {
				p.ends(t, name, c.code)
				return
			}
			status := p.concludes(t, name, c.code, c.outcome, c.reason)
			if child := status.Child.Code; child != nil && *child != c.code {
				t.Errorf("the status has the code %d, want %d", *child, c.code)
			}
			if status.Child.Signal != nil && !slices.Contains([]string{"USR1", "SEGV"}, *status.Child.Signal) {
				t.Errorf("signal %s", *status.Child.Signal)
			}
			if ran := status.Child.Code != nil || status.Child.Signal != nil; ran != (c.outcome == "done") {
				t.Errorf("the command ran: %v; %+v", ran, status)
			}
		})
	}
}

// An error of the system says why a program that is there can't be executed, and what to do.
func TestNotExecutable_has_a_hint(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	absent := t.TempDir() + "/interpreter"
	for text, c := range map[string]struct {
		code int
		want string
	}{
		"echo\n":                            {126, "a script begins with a line such as #!/bin/sh; or run it by -- sh "},
		"":                                  {126, "a script begins with a line such as #!/bin/sh"},
		"#!" + absent + " -x\n":             {127, "there is no " + absent + " -x, which its first line names"},
		"#!/bin/sh\r\necho\n":               {127, "its first line ends with a carriage return"},
		"\x7fELF\x02\x01\x01 of no machine": {126, "it is a program for another machine"},
	} {
		file := tempFile(t)
		must.OK(t, os.WriteFile(file, []byte(text), 0o755))
		p := run(t, addr, "/hint", "--", file)
		if code := p.ProcessState.ExitCode(); code != c.code || !strings.Contains(p.err.String(), c.want) {
			t.Errorf("%q: exit code %d, want %d, with %q\n%s", text, code, c.code, c.want, p.err.String())
		}
	}
}

// What the shell gives as /dev/fd/63 can be read once: credentials by exec, hold and wait, and contexts.
func TestFiles_that_are_pipes(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for name, command := range map[string]string{
		"credentials of exec": `docent exec --auth-file <(printf digest:u:p) /pipes-exec -- sh -c 'exit 0'`,
		"credentials of hold": `docent hold --auth-file <(printf digest:u:p) /pipes-hold < <(:)`,
		"credentials of wait": `docent wait --auth-file <(printf digest:u:p) /pipes`,
		"contexts of exec":    `env -u DOCENT_CONNECT docent exec --config <(printf '{"current":"a","contexts":{"a":{"connect":"'$DOCENT_CONNECT'"}}}') /pipes/config -- true`,
		"the status":          `[ "$(docent exec --status-file >(cat) /pipes/status -- true | grep -c '"outcome":"done"')" = 1 ]`,
	} {
		cmd, _ := inShell(t, addr, command, "")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// ps shows docent's processes by their names.
func TestNames_of_processes(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	p, _ := begin(t, addr, "", "exec sleep 60", "/names")
	for pid, want := range map[int]string{p.Process.Pid: "docent exec\n", workerOf(p): "docent-child\n"} {
		if got := contents(fmt.Sprintf("/proc/%d/comm", pid)); got != want {
			t.Errorf("process %d is called %q, want %q", pid, got, want)
		}
	}
}

// name125 is a path of the test of exit codes.
const name125 = "exit/twice"

func TestKind(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	script := `echo "$DOCENT_KIND $DOCENT_LOCK $DOCENT_NODE $DOCENT_FENCE $DOCENT_SESSION" | tr '\n' ' '`
	for _, c := range []struct {
		flags []string
		kind  string
		node  string // a part of its path
	}{
		{nil, "lock", "-lock-"},
		{[]string{"--lock"}, "lock", "-lock-"},
		{[]string{"--read"}, "read", "__READ__"},
		{[]string{"--write"}, "write", "__WRIT__"},
		{[]string{"--exclusive"}, "exclusive", "/kinds/exclusive"},
		{[]string{"--semaphore", "2"}, "semaphore", "-lease-"},
		{[]string{"--leader"}, "leader", "-latch-"},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			t.Parallel()
			path := "/kinds/" + strings.Join(append([]string{c.kind}, c.flags...), "_")
			if c.kind == "exclusive" {
				path = "/kinds/exclusive"
			}
			p := run(t, addr, append(c.flags, path, "--", "sh", "-c", script)...)
			out, fence := p.out.String(), p.concludes(t, "it", 0, "done", "").Fence
			if !strings.HasPrefix(out, c.kind+" "+path+" ") || !strings.Contains(out, c.node) || fence == "" || !strings.Contains(out, " "+fence+" 0x") {
				t.Errorf("environment %q, fence %q", out, fence)
			}
		})
	}
}

// A signal ends the wait for another owner's lock.
func TestSignal_ends_the_wait(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	holder, _ := begin(t, addr, "", "exec sleep 60", "/conflict")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		p := start(t, addr, "-v", "/conflict", "--", "true")
		eventually(t, "it waits", func() bool { return strings.Contains(p.err.String(), "waiting behind") })
		must.OK(t, p.Process.Signal(sig))
		p.concludes(t, sig.String()+" while it waits", 128+int(sig), execute.OutcomeInterrupted, "")
	}
	must.OK(t, holder.Process.Signal(syscall.SIGTERM))
	holder.ends(t, "the holder", 143)
	run(t, addr, "-n", "/conflict", "--", "true").ends(t, "the next one", 0)
}

func TestSeveralPaths_are_locked_together(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	p := run(t, addr, "/several/b", "/several/a", "--", "sh", "-c", `printf '%s|%s' "$DOCENT_LOCK" "$DOCENT_FENCE"`)
	var a, b int64
	_, err := fmt.Sscanf(p.out.String(), "/several/a\n/several/b|%d\n%d", &a, &b)
	if err != nil || a == 0 || b == 0 {
		t.Errorf("%v: %q\n%s", err, p.out.String(), p.err.String())
	}
}

func TestReentry_is_refused(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	inner := func(flags string) string {
		return quoted(os.Args[0]) + " exec --connect " + addr + " " + flags + " -- echo inner"
	}
	for flags, want := range map[string]int{
		"/re/b /re/a": 125, "--reenter -w BOUND /re/a": 124, "--namespace re /a": 125,
	} {
		p, got := (*program)(nil), -1
		for bound := 200 * time.Millisecond; got != want && bound < time.Minute; bound *= 4 { // it has to connect, too
			p = run(t, addr, "/re/a", "/re/d", "--", "sh", "-c", inner(strings.ReplaceAll(flags, "BOUND", bound.String())))
			got = p.ProcessState.ExitCode()
		}
		p.ends(t, "inner exec "+flags, want)
	}
}

// The servers may be spelled otherwise, and the command may be docent wait. A hold that has ended is none: a process
// that was left behind may take the lock.
func TestReentry_is_refused_while_the_hold_stands(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	_, port, _ := strings.Cut(addr, ":")
	other := quoted(os.Args[0]) + " %s --connect LOCALHOST:" + port + ",127.0.0.1:" + port
	for name, c := range map[string]struct {
		outer []string
		inner string
		want  int
	}{
		"exec":              {nil, fmt.Sprintf(other, "exec") + " -w 10s /held/PATH -- true", 125},
		"exec of a read":    {[]string{"--write"}, fmt.Sprintf(other, "exec") + " --read -w 10s /held/PATH -- true", 125},
		"exec of a writer":  {[]string{"--read"}, fmt.Sprintf(other, "exec") + " --write -w 10s /held/PATH -- true", 125},
		"exec of a permit":  {[]string{"--semaphore", "1"}, fmt.Sprintf(other, "exec") + " --semaphore 1 -w 10s /held/PATH -- true", 125},
		"exec of an unfair": {[]string{"--exclusive"}, fmt.Sprintf(other, "exec") + " --exclusive -w 10s /held/PATH -- true", 125},
		"exec of a leader":  {[]string{"--leader"}, fmt.Sprintf(other, "exec") + " --leader -w 10s /held/PATH -- true", 125},
		"wait":              {nil, fmt.Sprintf(other, "wait") + " --timeout 10s /held/PATH", 2},
		"wait for another":  {nil, fmt.Sprintf(other, "wait") + " --timeout 10s /held/PATH-2", 0},
		"hold":              {nil, fmt.Sprintf(other, "hold") + " -w 10s /held/PATH </dev/null", 125},
		"chroot":            {nil, quoted(os.Args[0]) + " exec --connect localhost:" + port + "/held -w 10s /PATH -- true", 125},
		"another lock":      {nil, fmt.Sprintf(other, "exec") + " -w 10s /held/PATH-2 -- true", 0},
		"readers":           {[]string{"--read"}, fmt.Sprintf(other, "exec") + " --read -w 10s /held/PATH -- true", 0},
	} {
		path := strings.ReplaceAll(name, " ", "-")
		run(t, addr, append(c.outer, "/held/"+path, "--", "sh", "-c", strings.ReplaceAll(c.inner, "PATH", path))...).ends(t, name, c.want)
	}
	got := tempFile(t)
	daemon := fmt.Sprintf("(sleep 1; %s -w 20s /held/later -- sh -c 'echo got >\"%s\"') >/dev/null 2>&1 &", fmt.Sprintf(other, "exec"), got)
	run(t, addr, "--leftovers", "ignore", "/held/later", "--", "sh", "-c", daemon).ends(t, "a daemon", 0)
	if text := await(t, got); text != "got" {
		t.Errorf("the daemon wrote %q", text)
	}
}

func TestEnvironment_has_no_credentials(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	p := startWith(t, []string{"DOCENT_AUTH=digest:u:sesame", "DOCENT_FENCE=outer", "EMPTY=", "ODD=a=b\nc"}, addr, "/env", "--", "env")
	p.ends(t, "it", 0)
	out := p.out.String() + p.err.String()
	if strings.Contains(out, "sesame") || strings.Contains(out, "DOCENT_AUTH") || strings.Contains(out, "outer") {
		t.Errorf("environment:\n%s", out)
	}
	if !strings.Contains(out, "EMPTY=\n") || !strings.Contains(out, "ODD=a=b\nc\n") {
		t.Errorf("the environment is not whole:\n%s", out)
	}
}

// The owner is named after the program, without its arguments, which may be secrets, or as --owner says.
func TestOwner_is_the_program(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	for _, kind := range []string{"--lock", "--write", "--exclusive", "--semaphore=1", "--leader"} {
		for owner, flags := range map[string][]string{"sh": nil, "nightly": {"--owner", "nightly"}} {
			path := "/owner/" + owner + kind
			p, _ := begin(t, addr, "", "exec sleep 60 # sesame", append(flags, kind, path)...)
			all := contenders(t, c, path)
			if len(all) != 1 || all[0].Meta == nil || all[0].Meta.Owner != owner || all[0].Meta.Party == "" {
				t.Errorf("%s: contenders %+v, want one of the owner %s", path, all, owner)
				continue
			}
			if data, _, err := c.Get(t.Context(), all[0].Znode); err != nil || strings.Contains(string(data), "sesame") {
				t.Errorf("%s: %v: the znode has the program's arguments: %s", path, err, data)
			}
			_ = p.Process.Signal(syscall.SIGTERM)
			p.end(t)
		}
	}
}

// Nested execs are one party, so a deadlock of two scripts is found.
func TestParty_is_the_outer_execs(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	inner := quoted(os.Args[0]) + " exec --connect " + addr + ` /party/b -- sh -c 'echo $DOCENT_PARTY; echo "$DOCENT_HELD" | wc -l'`
	p := run(t, addr, "/party/a", "--", "sh", "-c", "echo $DOCENT_PARTY; "+inner)
	lines := strings.Fields(p.out.String())
	if len(lines) != 3 || lines[0] == "" || lines[0] != lines[1] || lines[2] != "2" {
		t.Errorf("parties and held locks %q\n%s", lines, p.err.String())
	}
	p = startWith(t, []string{"DOCENT_PARTY=abc"}, addr, "/party/c", "--", "sh", "-c", "echo $DOCENT_PARTY")
	if p.ends(t, "it", 0); p.out.String() != "abc\n" {
		t.Errorf("party %q, want abc", p.out.String())
	}
}

// The lock's znodes are the creator's if docent has credentials.
func TestACL(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr, framework.WithAuth("digest", []byte("u:sesame")))
	for _, test := range []struct {
		auth  string
		flags []string
		want  string
	}{
		{"", nil, "world"},
		{"digest:u:sesame", nil, "digest"},
		{"digest:u:sesame", []string{"--acl", "open"}, "world"},
		{"digest:u:sesame", []string{"--acl", "creator"}, "digest"},
	} {
		for _, kind := range []string{"--lock", "--write", "--exclusive", "--semaphore=1", "--leader"} {
			path := fmt.Sprintf("/acl%s%s%d", kind, strings.Join(test.flags, ""), len(test.auth))
			node := tempFile(t)
			p := startWith(t, []string{"DOCENT_AUTH=" + test.auth}, addr, append(test.flags, kind, path, "--", "sh", "-c", "echo $DOCENT_NODE >"+quoted(node)+"; exec sleep 60")...)
			list, _, err := c.ACL(t.Context(), await(t, node))
			if err != nil || len(list) != 1 || list[0].Scheme != test.want {
				t.Errorf("%s %s with %q: ACL %v, %v, want %s", kind, test.flags, test.auth, list, err, test.want)
			}
			_ = p.Process.Signal(syscall.SIGTERM)
			p.end(t)
		}
	}
}

// Messages name the path in the ensemble, with chroot and namespace.
func TestMessages_name_the_path_in_the_ensemble(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c, node := apptest.Client(t, addr), tempFile(t)
	inside := " --connect " + addr + "/app --namespace ns "
	p := start(t, addr+"/app", "--namespace", "ns", "--no-guard", "/a", "--", "sh", "-c", quoted(os.Args[0])+" wait"+inside+"/a; "+
		quoted(os.Args[0])+" exec"+inside+"/a -- true; echo $DOCENT_NODE >"+quoted(node)+"; exec sleep 60")
	must.OK(t, c.Delete(t.Context(), "/app/ns"+await(t, node)))
	p.end(t)
	for _, text := range []string{
		"no guard", "the lock was lost", "an outer docent exec holds this lock and waits for this command", "an outer docent exec holds this lock and waits for this one",
	} {
		if !strings.Contains(p.err.String(), " /app/ns/a: "+text) {
			t.Errorf("no %q for /app/ns/a in\n%s", text, p.err.String())
		}
	}
}
