package watch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
)

// A terminal has a process, and what that has shown.
type terminal struct {
	*os.File
	tty   *os.File // the process's end, kept open so that its settings last
	cmd   *exec.Cmd
	shown apptest.Buffer
	fresh *term.State // before the process
}

// onTerminal starts the process on a terminal of 80 by 24 characters.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	own, tty := must.Get2(pty.Open())(t)
	x := &terminal{File: own, tty: tty, cmd: cmd}
	must.OK(t, pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 80}))
	x.fresh = x.settings(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.OK(t, cmd.Start())
	read := make(chan struct{})
	go func() { // ends with the terminal
		defer close(read)
		text := make([]byte, 4096)
		for {
			n, err := own.Read(text)
			_, _ = x.shown.Write(text[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); tty.Close(); <-read; own.Close() })
	return x
}

// settings returns the settings of the terminal: whether it echoes, and others.
func (x *terminal) settings(t *testing.T) *term.State {
	t.Helper()
	return must.Get(term.GetState(int(x.tty.Fd())))(t)
}

// On a terminal watch takes the whole screen, and gives it back. The keys r and b run revoke and break there, with the
// flags of watch. Then the view is back.
func TestWatch_acts_on_a_terminal(t *testing.T) {
	t.Parallel()
	const question = "Type the last 6 characters"
	for name, test := range map[string]struct {
		protected bool
		dialog    []string // what to wait for, what to type, and so on
		revoked   bool
		broken    bool
		end       func(*terminal) error // nil types q
		code      int
	}{
		"Ctrl-C": {
			dialog: []string{"nightly"}, code: 130,
			end: func(x *terminal) error { _, err := x.WriteString("\x03"); return err },
		},
		"SIGINT": {
			dialog: []string{"nightly"}, code: 130,
			end: func(x *terminal) error { return x.cmd.Process.Signal(syscall.SIGINT) },
		},
		"revoke":              {dialog: []string{"nightly", "r", "y: ask", "y", "asking"}, revoked: true},
		"no revoke":           {dialog: []string{"nightly", "r", "y: ask", "n"}},
		"revoke of protected": {protected: true, dialog: []string{"nightly", "r", "y: ask", "y", "Type its name", "test\n", "revoke failed: not confirmed"}},
		"break": {
			protected: true, broken: true,
			dialog: []string{"nightly", "b", "Type its name", "prod\n", question, "000000\n", "deleted /report"},
		},
		"break of another":       {dialog: []string{"nightly", "b", question, "000001\n", "break failed: not confirmed: nothing was done"}},
		"Ctrl-C at the question": {dialog: []string{"nightly", "b", question, "\x03"}, code: 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, _ := held(t)
			args := []string{"watch", "--namespace", "locks", "/"}
			if test.protected {
				file := filepath.Join(t.TempDir(), "config.json")
				text := fmt.Sprintf(`{"current":"prod","contexts":{"prod":{"connect":%q,"protected":true}}}`, addr)
				must.OK(t, os.WriteFile(file, []byte(text), 0o600))
				args = append(args, "--config="+file)
			} else {
				args = append(args, "--connect="+addr)
			}
			x := onTerminal(t, apptest.Program(os.Args[0], args...))
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("it showed %q", x.shown.String())
				}
			})
			for i, text := range test.dialog {
				if i%2 == 0 {
					eventually(t, text, func() bool { return strings.Contains(x.shown.String(), text) })
				} else if _, err := x.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			if last := len(test.dialog) - 1; last%2 == 0 {
				eventually(t, "the outcome in the view", func() bool { return strings.Contains(view(x.shown.String()), test.dialog[last]) })
			}
			if reflect.DeepEqual(x.settings(t), x.fresh) && test.code == 0 {
				t.Error("watch has not taken the terminal")
			}
			if test.end != nil {
				must.OK(t, test.end(x))
			} else if test.code == 0 {
				must.Get(x.WriteString("q"))(t)
			}
			_ = x.cmd.Wait() // the code says it
			if code := x.cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !reflect.DeepEqual(x.settings(t), x.fresh) {
				t.Error("the terminal's settings are not as before")
			}
			for _, mode := range []string{"\x1b[?1049", "\x1b[?25", "\x1b[?2004"} { // screen, cursor, paste
				eventually(t, "the end of "+mode[2:], func() bool { return restored(x.shown.String(), mode) })
			}
			l, err := inspect.Read(t.Context(), apptest.Client(t, addr), "/locks/report")
			if err != nil || (len(l.Contenders) == 0) != test.broken || !test.broken && l.Contenders[0].Revoked != test.revoked {
				t.Errorf("%+v, %v", l.Contenders, err)
			}
		})
	}
}

// view returns what is shown on the screen of watch since it took it, "" if it has given it back.
func view(shown string) string {
	const screen = "\x1b[?1049"
	text, _ := strings.CutPrefix(shown[max(0, strings.LastIndex(shown, screen)):], screen)
	text, taken := strings.CutPrefix(text, "h")
	if !taken {
		return ""
	}
	return text
}

// restored reports whether the mode was last set as it is on a fresh terminal.
func restored(shown, mode string) bool {
	_, last, _ := strings.Cut(shown[max(0, strings.LastIndex(shown, mode)):], mode)
	want := "l"
	if strings.HasSuffix(mode, "25") {
		want = "h" // the cursor is visible
	}
	return strings.HasPrefix(last, want)
}
