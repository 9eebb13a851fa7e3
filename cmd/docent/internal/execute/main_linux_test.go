package execute_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/execute"
	"github.com/docent-go/docent/cmd/docent/internal/form/formtest"
	"github.com/docent-go/docent/cmd/docent/internal/query"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) {
	if code, ok := execute.Internal(os.Args[1:]); ok {
		os.Exit(code)
	}
	if file := os.Getenv(becomeRootVariable); file != "" {
		becomeRoot(file)
		return
	}
	if kind := os.Getenv(preyVariable); kind != "" {
		hunted(kind)
		return
	}
	if pid, err := strconv.Atoi(os.Getenv(debuggerVariable)); err == nil {
		runtime.LockOSThread() // only the tracing thread may wait for the others
		debug(pid)
		return
	}
	if os.Getenv(tracedVariable) != "" {
		trace()
		return
	}
	apptest.Main(func() { acceptSignals(); zktest.Main(m) }, append(query.Commands(), execute.New, execute.NewHold)...)
}

// acceptSignals lets the programs of tests take the signals that this process ignores from its start
// on, as under nohup. Programs inherit what is ignored, and docent exec respects it.
func acceptSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// serve returns the address of an embedded server.
func serve(t *testing.T, opts ...zkserver.Option) (*zkserver.Server, string) {
	t.Helper()
	srv := zkserver.Run(t, append(zkenv.DrawVersion(t), opts...)...)
	addr := must.Get(srv.Listen("127.0.0.1:0"))(t)
	return srv, addr
}

// A program is a docent exec or hold that runs.
type program struct {
	*exec.Cmd
	in       io.Closer // the standard input of hold, a pipe
	out, err apptest.Buffer
	status   string // the path of the status file of exec
}

// launch starts the process, which is docent or starts it, and keeps what it writes. It ends with the test.
func launch(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{Cmd: cmd}
	p.Stdout, p.Stderr, p.WaitDelay = &p.out, &p.err, 5*time.Second
	must.OK(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return p
}

// start starts "docent exec" with the arguments.
func start(t *testing.T, addr string, args ...string) *program {
	t.Helper()
	return startWith(t, nil, addr, args...)
}

// startWithCgroup is start without --no-cgroup: if docent may make a cgroup, it runs the command in it.
func startWithCgroup(t *testing.T, addr string, args ...string) *program {
	t.Helper()
	return startWith(t, nil, addr, append([]string{"--no-cgroup=false"}, args...)...)
}

// startWith starts "docent exec" with further variables, and without a cgroup, which would hide what is wrong with the
// other means.
func startWith(t *testing.T, env []string, addr string, args ...string) *program {
	t.Helper()
	status := tempFile(t)
	must.OK(t, os.WriteFile(status, bytes.Repeat([]byte("of an earlier run\n"), 100), 0o600)) // it is replaced
	cmd := apptest.Program(os.Args[0], append([]string{"exec", "--connect", addr, "--no-cgroup", "--status-file", status}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	p := launch(t, cmd)
	p.status = status
	return p
}

// begin starts "docent exec" with the arguments and a script that writes the words and goes on with the rest. It
// returns what the script has written.
func begin(t *testing.T, addr, words, rest string, args ...string) (*program, string) {
	t.Helper()
	file := tempFile(t)
	p := start(t, addr, append(args, "--", "sh", "-c", "echo "+words+" >"+quoted(file)+"; "+rest)...)
	return p, await(t, file)
}

// run runs "docent exec" to its end.
func run(t *testing.T, addr string, args ...string) *program {
	t.Helper()
	p := start(t, addr, args...)
	p.end(t)
	return p
}

// runBounded is run with "-w BOUND" for "-w" among the arguments. It runs again with twice the bound while the
// outcome is another one: the bound includes the connection, and on a busy machine that takes longer.
func runBounded(t *testing.T, addr, outcome string, args ...string) *program {
	t.Helper()
	for bound := 200 * time.Millisecond; ; bound *= 2 {
		all := slices.Clone(args)
		i := slices.Index(all, "-w")
		if i >= 0 {
			all = slices.Insert(all, i+1, bound.String())
		}
		p := run(t, addr, all...)
		if i < 0 || p.readStatus(t).Outcome == outcome || bound > time.Minute {
			return p
		}
	}
}

// end waits for the end and returns the exit code.
func (p *program) end(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatalf("%v\n%s", err, p.err.String())
	}
	return p.ProcessState.ExitCode()
}

// ends fails the test unless the program ends, or has ended, with the code. what names it.
func (p *program) ends(t *testing.T, what string, code int) {
	t.Helper()
	if p.ProcessState == nil {
		p.end(t)
	}
	if got := p.ProcessState.ExitCode(); got != code {
		t.Errorf("%s: exit code %d, want %d\n%s", what, got, code, p.err.String())
	}
}

// concludes is ends for a program whose status file has the outcome and the reason. It returns the status.
func (p *program) concludes(t *testing.T, what string, code int, outcome, reason string) execute.Status {
	t.Helper()
	p.ends(t, what, code)
	status := p.readStatus(t)
	if status.Outcome != outcome || status.Reason != reason {
		t.Errorf("%s: status %+v, want %s %s\n%s", what, status, outcome, reason, p.err.String())
	}
	return status
}

// readStatus returns what the status file says.
func (p *program) readStatus(t *testing.T) execute.Status {
	t.Helper()
	text := must.Get(os.ReadFile(p.status))(t)
	formtest.Check(t, "status", string(text))
	var status execute.Status
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatalf("%v: %q\n%s", err, text, p.err.String())
	}
	return status
}

// patience is how long a test waits for what has no promised time. It ends a run that hangs, and must not
// end one on a slow machine.
const patience = 5 * time.Minute

// eventually waits until what holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	zktest.Eventually(t, patience, what, holds)
}

// tempFile returns the path of a file that does not exist yet.
func tempFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "file")
}

// quoted returns the path as a word of a shell's script: the folder of temporary files may have any name.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

func contents(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// alive reports whether a process with this id runs and has not ended.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return !strings.HasPrefix(string(state), "Z") && !strings.HasPrefix(string(state), "X")
}
