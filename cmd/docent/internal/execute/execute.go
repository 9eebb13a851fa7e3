// Package execute is the command "docent exec": it runs a command under a lock, and ends it before
// another client can be granted that lock.
//
// [Budget] says when. [Supervisor] follows it while the command runs. A process is the command with all that it starts, and a guard is the process above
// docent, which ends them if docent can't. docs/adr/0036 says why.
package execute

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// The exit codes of exec, besides CMD's own and those of signals.
const (
	codeLost          = 121
	codeHeld          = 123
	codeTimeout       = 124
	codeFailed        = 125
	codeNotExecutable = 126
	codeNotFound      = 127
	codeSignal        = 128 // and the number
)

// errProc ends an exec that could not see what it has to stop.
var errProc = errors.New("/proc must show the processes of docent's own pid namespace, because docent stops by it what CMD starts: " +
	"mount it, as unshare --mount-proc and bwrap --proc /proc do")

const long = `Run CMD while docent holds the lock of PATH, or of several paths together.

CMD gets docent's standard streams, and in its environment DOCENT_LOCK, DOCENT_KIND, DOCENT_NODE,
DOCENT_FENCE, DOCENT_SESSION, DOCENT_PARTY and DOCENT_HELD. A shell runs only with -- sh -c '…'.

docent stops CMD before another client can be granted the lock: see "docent help loss". The lock ends
with CMD, so there is no command to lock in one step and unlock in another. It runs on Linux.

"docent help exit-codes" has the exit codes.`

// New returns the command.
func New(app *cli.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:         "exec [flags] PATH… -- CMD [ARG…]",
		Short:       "Run a command under a lock",
		GroupID:     cli.ToRun,
		Long:        long,
		Example:     "  docent exec /locks/report -- ./report.sh\n  docent exec -w 10s --semaphore 3 /locks/import -- make import",
		Annotations: map[string]string{cli.SignalsOwn: "yes", cli.UsageCode: "125", cli.LoadsContexts: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return ended(execute(cmd, app, &o, args))
		},
	}
	o.define(cmd.Flags())
	cmd.ValidArgsFunction = complete(app)
	completeChoices(cmd)
	cli.Choices(cmd, "stop-signal", stopSignals()...)
	cli.Choices(cmd, "on-lost-signal", stopSignals()...)
	return cmd
}

// ended returns the error of a command that ends with the exit code.
func ended(code int, err error) error {
	if code == 0 && err == nil || cli.IsUsage(err) {
		return err
	}
	return &cli.ExitError{Code: code, Err: err}
}

// complete has the shell complete CMD and its arguments as file names, and the first path of a
// lock. Cobra does not say whether the word before is "--", so a second path may get file names.
func complete(app *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return app.CompletePath(cmd, args, begin)
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}
