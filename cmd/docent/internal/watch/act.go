package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// An Outcome is what a command that the user asked for has said last.
type Outcome string

// target returns the contender to act on and the path of its lock: the selected contender of the queue,
// or the only holder of the table's selected lock. If there is none, it says why.
func (m *Model) target() (c inspect.Contender, path, fault string) {
	if m.page == onQueue {
		l, at := m.shown()
		if at < 0 {
			return c, "", "no contender is selected"
		}
		return l.Contenders[at], l.Path, ""
	}
	entries := m.entries()
	if m.page != onTable || len(entries) == 0 {
		return c, "", "no lock is selected"
	}
	l := entries[m.row(entries)].Lock
	holders := l.Holders()
	if len(holders) != 1 {
		return c, "", "the lock has " + show.Counted(len(holders), "holder") + ": enter shows its contenders, to select one"
	}
	return holders[0], l.Path, ""
}

// revoke asks whether to ask the target to release: it is the znode of now that is meant, whoever holds
// the lock later. The command asks again only if the context is protected.
func (m *Model) revoke() {
	c, path, fault := m.target()
	if fault != "" {
		m.said = fault
		return
	}
	m.question = fmt.Sprintf("y: ask %s to release %s; any other key: do not", show.Who(c), cli.Safe(path))
	m.agreed = []string{"revoke", c.Znode, "--yes"}
}

// breakTarget runs break for the target. It has a confirmation of its own.
func (m *Model) breakTarget() tea.Cmd {
	c, _, fault := m.target()
	if fault == "" && !c.Read() {
		fault = "the contender could not be read"
	}
	if fault != "" {
		m.said = fault
		return nil
	}
	owner := "--persistent"
	if c.Session != 0 {
		owner = "--session=" + show.Session(c.Session)
	}
	return m.Run("break", c.Znode, owner, "--czxid="+strconv.FormatInt(c.Czxid, 10))
}

// answer takes the key that answers the question.
func (m *Model) answer(name string) tea.Cmd {
	args := m.agreed
	m.question, m.agreed = "", nil
	if name != "y" {
		m.said = "nothing was done"
		return nil
	}
	return m.Run(args...)
}

// stopWithin bounds how long a command may need to end its session when watch ends.
const stopWithin = 5 * time.Second

// docent runs docent itself on the terminal, which the screen gives back meanwhile. It has the global
// flags and the environment of watch. Its message is an [Outcome].
func (w *watcher) docent(ctx context.Context, args ...string) tea.Cmd {
	said := func(err error, text string) Outcome {
		if err != nil {
			text = args[0] + " failed: " + text
		}
		return Outcome(cli.Safe(text))
	}
	self, err := os.Executable()
	if err != nil {
		return func() tea.Msg { return said(err, err.Error()) }
	}
	cmd := exec.CommandContext(ctx, self, slices.Concat(w.app.GivenFlags(), args)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	var out, errs bytes.Buffer
	// The question must be seen even if standard error is a file.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = w.app.In, io.MultiWriter(w.app.Out, &out), io.MultiWriter(w.app.Out, &errs)
	cmd.Env = w.app.Env
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		text := lastLine(out.String())
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && errs.Len() > 0 {
			text = complaint(errs.String())
		} else if err != nil {
			text = err.Error()
		}
		return said(err, text)
	})
}

// complaint returns the error that docent wrote last. A question may be before it, in the same line.
func complaint(text string) string {
	if i := strings.LastIndex(text, cli.Says); i >= 0 {
		text, _, _ = strings.Cut(text[i+len(cli.Says):], "\n")
		return text
	}
	return lastLine(text)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}
