package execute_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
)

// startInTerminal starts the command in a terminal, and kills it at the test's end.
func startInTerminal(t *testing.T, cmd *exec.Cmd) (terminal *os.File, output func() string) {
	t.Helper()
	terminal = must.Get(pty.Start(cmd))(t)
	var shown apptest.Buffer
	read := make(chan struct{})
	go func() { // ends with the terminal
		defer close(read)
		_, _ = io.Copy(&shown, terminal) // EIO at its end
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); terminal.Close(); <-read })
	return terminal, shown.String
}

func foreground(t *testing.T, terminal *os.File) int {
	t.Helper()
	return must.Get(unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP))(t)
}

// The command reads the terminal, gets Ctrl-C once, and is continued after Ctrl-Z.
func TestTerminal_is_the_commands(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	script := `trap 'echo interrupted' INT; echo ready; read line; echo "line: $line"; read line; echo "then: $line"`
	cmd := apptest.Program(os.Args[0], "exec", "--connect", addr, "/terminal", "--", "bash", "-c", script)
	terminal, output := startInTerminal(t, cmd)
	eventually(t, "the command is ready", func() bool { return strings.Contains(output(), "ready") })
	if group := foreground(t, terminal); group == cmd.Process.Pid || group <= 0 {
		t.Errorf("the foreground group is %d, docent's own is %d", group, cmd.Process.Pid)
	}
	write := func(text string) {
		must.Get(terminal.WriteString(text))(t)
	}
	write("hello\n")
	eventually(t, "the command has read the line", func() bool { return strings.Contains(output(), "line: hello") })
	write("\x1a") // Ctrl-Z
	eventually(t, "the command is continued", func() bool { return strings.Contains(output(), "it is continued") })
	write("\x03") // Ctrl-C
	eventually(t, "the command is interrupted", func() bool { return strings.Contains(output(), "interrupted") })
	write("world\n")
	eventually(t, "the command has ended", func() bool { return strings.Contains(output(), "then: ") })
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, output())
	}
	if got := strings.Count(output(), "interrupted\r\n"); got != 1 {
		t.Errorf("Ctrl-C reached the command %d times:\n%s", got, output())
	}
}

// A shell that runs docent exec has the terminal again at the end, even if the command was killed.
func TestTerminal_is_given_back(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	docent := fmt.Sprintf("%s=1 %s exec --connect %s /back -- ", apptest.ProgramVariable, quoted(os.Args[0]), addr)
	shell := exec.Command("bash", "--norc", "-i")
	shell.Env = append(os.Environ(), "PS1=", "PROMPT_COMMAND=", "HISTFILE=")
	terminal, output := startInTerminal(t, shell)
	type step struct{ input, want string }
	for i, s := range []step{
		{docent + "sh -c 'exit 3'; echo end-$?\n", "end-3"},
		{docent + "sh -c 'kill -KILL $$'; echo end-$?\n", "end-137"},
		{docent + "sh -c 'echo re\"\"ady; exec cat'; echo end-$?\n", ""},
		{"\x03", "end-130"},
	} {
		if s.input == "\x03" {
			eventually(t, "cat has the terminal", func() bool {
				return foreground(t, terminal) != shell.Process.Pid && strings.Contains(output(), "ready")
			})
		}
		must.Get(terminal.WriteString(s.input))(t)
		if s.want == "" {
			continue
		}
		eventually(t, fmt.Sprintf("step %d: %s", i, s.want), func() bool { return strings.Contains(output(), s.want+"\r\n") })
		eventually(t, "the shell has the terminal", func() bool { return foreground(t, terminal) == shell.Process.Pid })
	}
	_ = shell.Process.Signal(syscall.SIGHUP)
}

// In a pipeline, as to a pager, the command does not take the foreground at its start. When it reads the terminal, it
// gets it. A script without job control, which does not take the terminal itself, reads it after docent.
func TestTerminal_is_shared(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for name, script := range map[string]string{
		"in a pipeline": "exec --connect %s /pipeline -- bash -c 'read line; echo got $line' | cat",
		"with a script": "exec --connect %s /script -- true; read line; echo got $line",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell := apptest.Program("sh", "-c", quoted(os.Args[0])+" "+fmt.Sprintf(script, addr))
			terminal := must.Get(pty.Start(shell))(t)
			defer terminal.Close()
			must.Get(terminal.WriteString("it\n"))(t)
			var shown strings.Builder
			_, _ = io.Copy(&shown, terminal) // EIO when the last process has closed the terminal
			if err := shell.Wait(); err != nil || !strings.Contains(shown.String(), "got it") {
				t.Errorf("%v\n%s", err, shown.String())
			}
		})
	}
}
