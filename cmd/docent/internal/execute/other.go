//go:build !linux

package execute

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// Internal runs a hidden command, if args are one. There are none on this platform.
func Internal([]string) (code int, ok bool) { return 0, false }

// A process is CMD with all that it starts.
type process struct{}

// A guardian is docent's side of its guard.
type guardian struct{}

// envGuard tells docent that it has a guard.
const envGuard = "DOCENT_GUARD"

func guardExec(*cli.App, *options) (int, error) {
	return codeFailed, errors.New("exec runs on Linux only")
}

// A cgroup is a control group for CMD.
type cgroup struct{}

func makeCgroup() *cgroup { return nil }
func (*cgroup) remove()   {}

func (*guardian) group() *cgroup   { return nil }
func (*guardian) hasDied() bool    { return false }
func (*guardian) note(int, Status) {}
func (*guardian) end()             {}

func checkProc() error { return nil }

func writeInBackground() {}

// A processEntry is a process that runs on.
type processEntry struct {
	pid  int
	name string
}

func describe([]processEntry) []string { return nil }

func newGuardian(*cli.App, chan<- os.Signal) (*guardian, error) { return nil, nil }

// An endOfCommand is how CMD ended.
type endOfCommand struct {
	status  syscall.WaitStatus
	guarded time.Time      // when the guard killed the group; zero if it did not
	left    []processEntry // those that run on
}

// notExecutableError is the error of a CMD that the system refuses to execute.
type notExecutableError struct{ errno syscall.Errno }

func (e notExecutableError) Error() string { return e.errno.Error() }

func prepare(string, []string, []*os.File, *guardian, *cgroup, func(string, ...any)) (*process, error) {
	return nil, errors.New("exec runs on Linux only")
}

func (*process) start([]string) error { return nil }
func (*process) finish() endOfCommand { return endOfCommand{} }

func (*process) Signal(syscall.Signal)             {}
func (*process) SignalAll(syscall.Signal) []string { return nil }
func (*process) Left() []string                    { return nil }
func (*process) running() ([]processEntry, error)  { return nil, nil }
func (*process) Leader() <-chan struct{}           { return nil }
func (*process) Gone() <-chan struct{}             { return nil }
func (*process) Guarded(time.Time)                 {}
