package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

const longHold = `Hold the lock of PATH, or of several paths together, for a shell script.

When docent holds the lock, it prints a line with "held", the fence and the path to standard output. It
releases the lock at the end of its standard input, or when it gets INT, TERM, HUP or QUIT. The end of a
pipe is also the end of the script, so a script that is killed keeps no lock. If standard input is
/dev/null, as that of background commands is, only a signal releases the lock.

If the lock is about to be lost, docent exits with 121 before another client can be granted it. It can't
stop the script: docent exec stops its command. "docent help exit-codes" has the exit codes.`

const exampleHold = `  coproc lock { docent hold /locks/report; }
  pid=$lock_PID                                     # bash forgets both when docent ends
  exec {held}<&"${lock[0]}" {input}>&"${lock[1]}"-
  read -r _ fence _ <&"$held" || exit 1             # waits for the lock
  ./report.sh
  exec {input}>&-                                   # releases it
  wait "$pid"                                       # 0, or 121 if the lock was lost`

// NewHold returns the command "docent hold".
func NewHold(app *cli.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:         "hold [flags] PATH…",
		Short:       "Hold a lock until the end of the input, for scripts",
		GroupID:     cli.ToRun,
		Long:        longHold,
		Example:     exampleHold,
		Annotations: map[string]string{cli.SignalsOwn: "yes", cli.UsageCode: strconv.Itoa(codeFailed)},
		RunE: func(cmd *cobra.Command, args []string) error {
			r := newRun(app)
			end := r.speak()
			code, err := r.hold(cmd.Context(), &o, args)
			end()
			return ended(code, err)
		},
	}
	o.defineHold(cmd.Flags())
	cmd.ValidArgsFunction = app.CompletePath
	completeChoices(cmd)
	return cmd
}

// hold holds the lock of the paths, and returns the exit code.
func (r *run) hold(ctx context.Context, o *options, paths []string) (int, error) {
	var err error
	if r.job, err = o.lockJob(paths); err != nil {
		return codeFailed, err
	}
	if r.owner, err = ownerOf(r.app, r.job.owner); err != nil {
		return codeFailed, fmt.Errorf("%s: %w", envParty, err)
	}
	defer r.listen()()
	takeSignals(r.signals)
	client, err := r.client()
	if err != nil {
		return codeFailed, err
	}
	l, budget, err := r.acquire(ctx, client)
	if err != nil {
		return r.refused(errors.Join(err, client.Close()))
	}
	if err := r.announce(client, l); err != nil { // the script will never know that it has the lock
		r.release(ctx, client, l)
		return codeFailed, fmt.Errorf("%s: released, because standard output takes nothing: %w", r.lockPath(), err)
	}
	code, err := r.await(l, budget)
	if code != codeLost {
		r.release(ctx, client, l)
	}
	// After a loss the client stays open until the process has ended: Close would end the session, and with
	// it what is left of the lease, while the script is still at work.
	return code, err
}

// announce says on standard output that the lock is held.
func (r *run) announce(c *framework.Client, l *lease.Lease) error {
	held := heldForm{Schema: cli.Schema, Event: "held", Session: fmt.Sprintf("0x%x", c.Session().ID)}
	var paths []string
	for _, member := range members(l) {
		held.Locks = append(held.Locks, heldLock{member.Path(), member.Node(), strconv.FormatInt(member.Fence(), 10)})
		paths = append(paths, cli.SafeWhole(member.Path()))
	}
	if format := r.app.Settings().Output; format == cli.JSON || format == cli.JSONLines {
		return r.app.WriteJSON(held)
	}
	_, err := fmt.Fprintf(r.app.Out, "held %s %s\n", fences(l), strings.Join(paths, " "))
	return err
}

// A heldForm is what hold writes as JSON.
type heldForm struct {
	Schema  string     `json:"schema"`
	Event   string     `json:"event"`
	Session string     `json:"session"`
	Locks   []heldLock `json:"locks"`
}

type heldLock struct {
	Path  string `json:"path"`
	Znode string `json:"znode"`
	Fence string `json:"fence"`
}

// await returns when the lock is to be released, with the exit code, or when it is lost, or about to be.
func (r *run) await(l Holding, b Budget) (int, error) {
	ended := r.endOfInput()
	for {
		select {
		case <-ended:
			return 0, nil
		case sig := <-r.signals:
			if number, ok := sig.(syscall.Signal); ok && endsWait(number) {
				return codeSignal + int(number), nil
			}
		case <-l.Lost():
			return codeLost, r.lostError(Reason(l.Err()))
		case <-time.After(time.Until(b.Warning(l.Deadline()))):
			if !time.Now().Before(b.Warning(l.Deadline())) { // the deadline may have moved on
				return codeLost, r.lostError("lease_deadline")
			}
		}
	}
}

// endOfInput returns a channel that is closed at the end of standard input; nil if that can't come, because
// it is /dev/null. Its goroutine ends with the input, or with the process: a read can't be ended.
func (r *run) endOfInput() <-chan struct{} {
	if isNull(r.app.In) {
		return nil
	}
	if sigBackgroundRead != 0 {
		signal.Ignore(sigBackgroundRead) // it would stop docent, and a holder that is stopped blocks all waiters
	}
	if cli.Terminal(r.app.In) {
		r.say("held; Ctrl-D or Ctrl-C releases it")
	}
	ended := make(chan struct{})
	go func() {
		if _, err := io.Copy(io.Discard, r.app.In); err != nil {
			r.say("standard input can't be read, so only a signal releases the lock: %v", err)
			return
		}
		close(ended)
	}()
	return ended
}

// isNull reports whether the stream is /dev/null.
func isNull(stream io.Reader) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	this, err := file.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(this, null)
}
