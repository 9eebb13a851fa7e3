// Package execute is the command "docent exec": it runs a command under a lock, and ends it before
// another client can be granted that lock.
//
// [Plan] decides when, and knows no clock and no process. [Supervisor] follows the plan while the
// command runs. A process is the command with all that it starts, and a guard is the process above
// docent, which ends them if docent can't. docs/adr/0036 says why.
package execute

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

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
			runtime.LockOSThread() // see prepare and guardExec
			defer runtime.UnlockOSThread()
			run := func() (int, error) { return guardExec(app, &o) }
			if o.noGuard || app.Getenv(envGuard) != "" {
				run = func() (int, error) { return newRun(app).run(cmd.Context(), &o, args, cmd.ArgsLenAtDash()) }
			}
			code, err := run()
			if code == 0 && err == nil || cli.IsUsage(err) {
				return err
			}
			return &cli.ExitError{Code: code, Err: err}
		},
	}
	o.define(cmd.Flags())
	cmd.ValidArgsFunction = complete(app)
	cli.Choices(cmd, "leftovers", string(WaitForLeftovers), string(KillLeftovers), string(IgnoreLeftovers))
	cli.Choices(cmd, "on-suspend", "keep", "stop")
	cli.Choices(cmd, "acl", aclOpen, aclCreator)
	cli.Choices(cmd, "stop-signal", signalNames()...)
	cli.Choices(cmd, "on-lost-signal", signalNames()...)
	return cmd
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

// lookUp returns the path of CMD, or the exit code and the reason why it can't be executed.
func lookUp(command string) (path string, code int, err error) {
	path, err = exec.LookPath(command)
	switch {
	case err == nil:
		return path, 0, nil
	case errors.Is(err, exec.ErrDot):
		return path, 0, nil // PATH says so
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", codeNotFound, err
	}
	return "", codeNotExecutable, err
}

// exitCode returns docent's exit code for the end of a process.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}

// streams returns the app's standard streams, which CMD inherits as they are.
func streams(app *cli.App) ([]*os.File, error) {
	files := make([]*os.File, 3)
	for i, stream := range []any{app.In, app.Out, app.Err} {
		file, ok := stream.(*os.File)
		if !ok {
			return nil, errors.New("the standard streams are no files")
		}
		files[i] = file
	}
	return files, nil
}
