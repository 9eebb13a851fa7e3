package execute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

// An execution is one run of exec.
type execution struct {
	*run

	guard *guardian
	file  statusFile
}

// execute is the function of the command, in the process that the user started or in that of its guard's child.
func execute(cmd *cobra.Command, app *cli.App, o *options, args []string) (int, error) {
	runtime.LockOSThread() // see prepare and guardExec
	defer runtime.UnlockOSThread()
	if o.noGuard || app.Getenv(envGuard) != "" {
		r := execution{run: newRun(app)}
		return r.execute(cmd.Context(), o, args, cmd.ArgsLenAtDash())
	}
	return guardExec(app, o)
}

// execute runs the command of args, and returns the exit code. It writes the status file in each case
// but one: that it can't be opened. If it can't be written, as on a full disk, the exit code is that of
// the run nevertheless.
func (r *execution) execute(ctx context.Context, o *options, args []string, dash int) (int, error) {
	defer r.listen()()
	guard, err := newGuardian(r.app, r.signals, r.say)
	if err != nil {
		return codeFailed, err
	}
	if r.guard = guard; guard == nil {
		takeSignals(r.signals)
	}
	defer guard.end()
	if r.file, err = openStatus(o.statusFile, beginStatus); err != nil {
		return codeFailed, cli.Usage(err)
	}
	end := r.speak()
	code, err := r.checked(ctx, o, args, dash)
	end()
	if fault := r.file.write(r.status, true); fault != nil {
		r.app.Say("%v", fault) // and no more: the exit code says what has become of CMD
	}
	return code, err
}

// checked checks the arguments and runs CMD under the lock.
func (r *execution) checked(ctx context.Context, o *options, args []string, dash int) (int, error) {
	err := r.app.LoadContexts()
	if err == nil {
		r.job, err = o.job(args, dash)
	}
	if err != nil {
		return r.fail(codeFailed, err)
	}
	if err := checkProc(); err != nil {
		return r.fail(codeFailed, err)
	}
	path, code, err := lookUp(r.job.command[0])
	if err != nil {
		return r.fail(code, err)
	}
	if r.owner, err = ownerOf(r.app, r.job.owner); err != nil {
		return r.fail(codeFailed, fmt.Errorf("%s: %w", envParty, err))
	}
	return r.underLock(ctx, path)
}

// underLock connects, waits for the lock, and runs CMD. It fills in the status.
func (r *execution) underLock(ctx context.Context, path string) (int, error) {
	files, err := streams(r.app)
	if err != nil {
		return r.fail(codeFailed, err)
	}
	client, err := r.client()
	if err != nil {
		return r.fail(codeFailed, err)
	}
	group := r.guard.group()
	if r.job.noGuard && !r.job.noCgroup {
		group = makeCgroup()
		defer group.remove()
	}
	p, err := prepare(path, r.job.command, files, r.guard, group, r.say)
	if err != nil {
		return r.fail(codeFailed, errors.Join(err, client.Close()))
	}
	l, budget, err := r.acquire(ctx, client)
	if err != nil {
		p.finish()
		return r.refused(errors.Join(err, client.Close()))
	}
	granted := time.Now()
	r.status.Waited, r.status.Fence, r.status.Granted = granted.Sub(r.begin).Seconds(), fences(l), optionalTime(granted)
	r.guard.note(codeFailed, r.status)
	code, err := r.work(p, client, l, budget)
	r.status.Held = time.Since(granted).Seconds()
	r.guard.note(code, r.status)
	r.release(ctx, client, l) // last: after a loss, Close would let the ensemble end the session
	return code, err
}

// work starts CMD, supervises it, and returns its exit code.
func (r *execution) work(p *process, c *framework.Client, l *lease.Lease, b Budget) (int, error) {
	p.Guarded(b.Kill(l.Deadline()))
	if r.job.noGuard {
		r.say("no guard: if docent is killed, only CMD itself is, and if docent is stopped, nothing ends CMD")
	}
	if err := p.start(r.job.environment(r.app, c, l, r.owner.Party())); err != nil {
		p.finish()
		return r.notStarted(err)
	}
	s := Supervisor{
		Holding: l, Program: p, Budget: b, Stop: r.job.stop, OnLost: r.job.lost, Leftovers: Leftovers(r.job.options.leftovers),
		Signals: r.signals, Revoked: r.revoked, Say: r.say, Stuck: func(v Verdict) { r.stuck(v, p) },
	}
	verdict := s.Run()
	end := p.finish()
	for _, left := range describe(end.left) {
		r.say("runs on, and is not under the lock: %s", left)
	}
	if !end.guarded.IsZero() { // it was as quick as docent, or docent was stopped
		if verdict.Outcome == OutcomeDone {
			verdict.Outcome, verdict.Reason = OutcomeLost, "lease_deadline"
		}
		if verdict.KilledAt.IsZero() || end.guarded.Before(verdict.KilledAt) {
			verdict.KilledAt = end.guarded
		}
	}
	if verdict.Outcome == OutcomeDone && r.guard.hasDied() {
		verdict.Outcome, verdict.Reason = OutcomeFailed, "guard_ended"
	}
	return r.conclude(verdict, end)
}

// stuck notes that what CMD has started does not end.
func (r *execution) stuck(v Verdict, p *process) {
	left, _ := p.running()
	r.note(v, left)
	r.status.Held = time.Since(*r.status.Granted).Seconds()
	if err := r.file.write(r.status, false); err != nil {
		r.say("%v", err)
	}
}

// note notes what has become of CMD, and what is left of it.
func (r *execution) note(v Verdict, left []processEntry) {
	s := &r.status
	s.Outcome, s.Reason, s.WarnedAt, s.KilledAt, s.NotEnded = v.Outcome, v.Reason, optionalTime(v.WarnedAt), optionalTime(v.KilledAt), listed(left)
}

// conclude notes the end of CMD and returns the exit code.
func (r *execution) conclude(v Verdict, end endOfCommand) (int, error) {
	r.note(v, end.left)
	code := exitCode(end.status)
	if end.status.Signaled() {
		text := name(end.status.Signal())
		r.status.Child.Signal = &text
	} else {
		r.status.Child.Code = &code
	}
	if v.Outcome == OutcomeLost {
		return codeLost, r.lostError(v.Reason)
	}
	return code, nil
}

// notStarted returns the exit code for a CMD that could not be started.
func (r *execution) notStarted(err error) (int, error) {
	err = fmt.Errorf("%s: %w", cli.Safe(r.job.command[0]), err)
	if refusal := (notExecutableError{}); errors.As(err, &refusal) {
		if hint := r.hint(refusal.errno); hint != "" {
			err = fmt.Errorf("%w: %s", err, hint)
		}
		if refusal.errno == syscall.ENOENT {
			return r.fail(codeNotFound, err)
		}
		return r.fail(codeNotExecutable, err)
	}
	return r.fail(codeFailed, err)
}

// hint says why the system does not execute a CMD that is there, "" if docent can't tell.
func (r *execution) hint(errno syscall.Errno) string {
	path, _, err := lookUp(r.job.command[0])
	if err != nil {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	var begin [256]byte
	n, _ := file.Read(begin[:])
	line, _, _ := strings.Cut(string(begin[:n]), "\n")
	interpreter, script := strings.CutPrefix(line, "#!")
	switch {
	case script && strings.HasSuffix(interpreter, "\r"):
		return "its first line ends with a carriage return, as on Windows"
	case script && errno == syscall.ENOENT:
		return "there is no " + cli.Safe(strings.TrimSpace(interpreter)) + ", which its first line names"
	case strings.HasPrefix(line, "\x7fELF"):
		return "it is a program for another machine"
	case errno == syscall.ENOEXEC:
		return "a script begins with a line such as #!/bin/sh; or run it by -- sh " + cli.Safe(path)
	}
	return ""
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

// listed returns the processes for the status.
func listed(left []processEntry) []Process {
	var list []Process
	for _, e := range left {
		list = append(list, Process{e.pid, cli.Safe(e.name)})
	}
	return list
}
