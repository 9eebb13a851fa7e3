package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// A run is one run of exec.
type run struct {
	app     *cli.App
	job     *job
	guard   *guardian
	signals chan os.Signal
	revoked chan struct{} // holds one request
	said    chan string   // messages for standard error
	owner   lock.Owner
	begin   time.Time
	path    string // of the first lock, in the ensemble; "" before there is a client
	file    *statusFile
	status  Status
}

func newRun(app *cli.App) *run {
	return &run{app: app, begin: time.Now(), revoked: make(chan struct{}, 1), said: make(chan string, maxSaid)}
}

// talkAfter is the time after which docent talks about a wait.
const talkAfter = time.Second

// releaseLimit bounds the release at the end. The deletion goes on in the client until Close.
const releaseLimit = 5 * time.Second

const (
	maxSaid   = 64          // messages that wait for standard error; further ones are dropped
	lastWords = time.Second // for the messages that are left at the end
)

// say writes to standard error, with the lock's path in front. It does not wait: the reader of standard
// error may have stopped reading, and CMD has to be stopped in time nevertheless.
func (r *run) say(format string, args ...any) {
	select {
	case r.said <- fmt.Sprintf("%s: %s", r.lockPath(), fmt.Sprintf(format, args...)):
	default:
	}
}

// speak begins to write what is said. end waits until all is written, or for a moment.
func (r *run) speak() (end func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with over; or with the process, if standard error takes nothing
		defer close(done)
		writeInBackground()
		for {
			select {
			case text := <-r.said:
				r.app.Say("%s", text)
				continue
			default:
			}
			select {
			case text := <-r.said:
				r.app.Say("%s", text)
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		select {
		case <-done:
		case <-time.After(lastWords):
		}
	}
}

// chatty says what is worth a line only with --verbose, or if docent has waited.
func (r *run) chatty(format string, args ...any) {
	if r.app.Settings().Verbose || time.Since(r.begin) > talkAfter {
		r.say(format, args...)
	}
}

// run runs the command of args, and returns the exit code. It writes the status file in each case
// but one: that it can't be opened. If it can't be written, as on a full disk, the exit code is that of
// the run nevertheless.
func (r *run) run(ctx context.Context, o *options, args []string, dash int) (int, error) {
	stop, err := r.listen()
	if err != nil {
		return codeFailed, err
	}
	defer stop()
	defer r.guard.end()
	if r.file, err = openStatus(o.statusFile); err != nil {
		return codeFailed, err
	}
	end := r.speak()
	code, err := r.checked(ctx, o, args, dash)
	end()
	if fault := r.file.write(r.status); fault != nil {
		r.app.Say("%v", fault) // and no more: the exit code says what has become of CMD
	}
	return code, err
}

// checked checks the arguments and runs CMD under the lock.
func (r *run) checked(ctx context.Context, o *options, args []string, dash int) (int, error) {
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

// listen begins to take signals: the guard's, or its own if it has no guard. The end of standard error's
// reader, as of "| head", must not end docent while CMD runs: the write fails instead.
func (r *run) listen() (stop func(), err error) {
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // CMD does not inherit this, as it would signal.Ignore
	}
	r.signals = make(chan os.Signal, 16) // as many as may arrive while one is passed on
	r.guard, err = newGuardian(r.app, r.signals)
	if r.guard == nil && err == nil {
		takeSignals(r.signals)
	}
	return func() { signal.Stop(r.signals) }, err
}

// underLock connects, waits for the lock, and runs CMD. It fills in the status.
func (r *run) underLock(ctx context.Context, path string) (int, error) {
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

// release releases the lock and closes the client.
func (r *run) release(ctx context.Context, c *framework.Client, l *lease.Lease) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	released := l.Release(bounded)
	if errors.Is(released, lease.ErrLost) {
		released = nil // the verdict has it
	}
	if fault := errors.Join(released, c.Close()); fault != nil {
		r.say("release: %s", cli.Safe(fault.Error()))
	}
}

// client returns a client. By default its znodes are open to every client only if docent has no credentials.
func (r *run) client() (*framework.Client, error) {
	given, err := r.app.HasCredentials()
	if err != nil {
		return nil, err
	}
	var opts []framework.Option
	if r.job.acl == aclCreator || r.job.acl == "" && given {
		opts = append(opts, framework.WithACL(acl.Creator()...))
	}
	c, err := r.app.Client(opts...)
	if err == nil {
		r.path = c.AbsolutePath(r.job.paths[0])
	}
	return c, err
}

// lockPath returns the path of the first lock, for messages.
func (r *run) lockPath() string { return cli.Safe(cmp.Or(r.path, r.job.paths[0])) }

// work starts CMD, supervises it, and returns its exit code.
func (r *run) work(p *process, c *framework.Client, l *lease.Lease, b Budget) (int, error) {
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
func (r *run) stuck(v Verdict, p *process) {
	s := r.status
	s.Outcome, s.Reason, s.WarnedAt, s.KilledAt = v.Outcome, v.Reason, optionalTime(v.WarnedAt), optionalTime(v.KilledAt)
	left, _ := p.running()
	s.Held, s.NotEnded = time.Since(*s.Granted).Seconds(), listed(left)
	if err := r.file.interim(s); err != nil {
		r.say("%v", err)
	}
}

// conclude notes the end of CMD and returns the exit code.
func (r *run) conclude(v Verdict, end endOfCommand) (int, error) {
	r.status.Outcome, r.status.Reason = v.Outcome, v.Reason
	r.status.WarnedAt, r.status.KilledAt, r.status.NotEnded = optionalTime(v.WarnedAt), optionalTime(v.KilledAt), listed(end.left)
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

func (r *run) lostError(reason string) error {
	return fmt.Errorf("%s: the lock was lost, or was about to be (%s)", r.lockPath(), reason)
}

// notStarted returns the exit code for a CMD that could not be started.
func (r *run) notStarted(err error) (int, error) {
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
func (r *run) hint(errno syscall.Errno) string {
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

// refused returns the exit code for a wait that ended without the lock.
func (r *run) refused(err error) (int, error) {
	r.status.Waited = time.Since(r.begin).Seconds()
	var interrupted signalError
	switch {
	case errors.As(err, &interrupted):
		r.status.Outcome = OutcomeInterrupted
		return codeSignal + int(interrupted.number), nil
	case errors.Is(err, lease.ErrHeld):
		r.status.Outcome = OutcomeHeld
		return r.conflict(codeHeld), err
	case errors.Is(err, context.DeadlineExceeded) && r.job.wait > 0 && !errors.Is(err, framework.ErrNotConnected):
		r.status.Outcome = OutcomeTimeout
		return r.conflict(codeTimeout), err
	}
	return r.fail(codeFailed, err)
}

// conflict returns the exit code of a wait that another owner's hold ended.
func (r *run) conflict(code int) int {
	if r.job.conflictGiven {
		return r.job.conflictCode
	}
	return code
}

// fail notes that docent failed, and returns the exit code.
func (r *run) fail(code int, err error) (int, error) {
	r.status.Outcome = OutcomeFailed
	switch {
	case cli.IsUsage(err):
		r.status.Reason = "usage"
	case code == codeNotFound:
		r.status.Reason = "not_found"
	case code == codeNotExecutable:
		r.status.Reason = "not_executable"
	default:
		r.status.Reason = reasonOf(err)
	}
	return code, err
}
