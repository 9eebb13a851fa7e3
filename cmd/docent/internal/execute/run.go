package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// A run is one run of exec or hold.
type run struct {
	app     *cli.App
	job     *job
	signals chan os.Signal
	revoked chan struct{} // holds one request
	said    chan string   // messages for standard error
	owner   lock.Owner
	begin   time.Time
	path    string // of the first lock, in the ensemble; "" before there is a client
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
	lastWord  = ""          // no message follows
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
	done := make(chan struct{})
	go func() { // ends with the last word; or with the process, if standard error takes nothing
		defer close(done)
		writeInBackground()
		for text := <-r.said; text != lastWord; text = <-r.said {
			r.app.Say("%s", text)
		}
	}()
	return func() {
		late := time.After(lastWords)
		select {
		case r.said <- lastWord:
		case <-late:
			return
		}
		select {
		case <-done:
		case <-late:
		}
	}
}

// chatty says what is worth a line only with --verbose, or if docent has waited.
func (r *run) chatty(format string, args ...any) {
	if r.app.Settings().Verbose || time.Since(r.begin) > talkAfter {
		r.say(format, args...)
	}
}

// listen makes the channel for signals. The end of standard error's reader, as of "| head", must not end docent while
// it holds the lock: the write fails instead.
func (r *run) listen() (stop func()) {
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // CMD does not inherit this, as it would signal.Ignore
	}
	r.signals = make(chan os.Signal, 16) // as many as may arrive while one is passed on
	return func() { signal.Stop(r.signals) }
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

func (r *run) lostError(reason string) error {
	return fmt.Errorf("%s: the lock was lost, or was about to be (%s)", r.lockPath(), reason)
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
	if r.job.set.Changed("conflict-exit-code") {
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
