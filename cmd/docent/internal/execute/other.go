//go:build !linux

package execute

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Internal runs a hidden command, if args are one. There are none on this platform.
func Internal([]string) (code int, ok bool) { return 0, false }

// A process is CMD with its process group.
type process struct{}

// An endOfCommand is how CMD ended.
type endOfCommand struct {
	status  syscall.WaitStatus
	guarded time.Time // when the guard killed the group; zero if it did not
	strays  []string
}

// notExecutableError is the error of a CMD that the system refuses to execute.
type notExecutableError struct{ errno syscall.Errno }

func (e notExecutableError) Error() string { return e.errno.Error() }

func prepare(string, []string, []*os.File, bool, func(string, ...any)) (*process, error) {
	return nil, errors.New("exec runs on Linux only")
}

func (*process) start([]string) error    { return nil }
func (*process) finish() endOfCommand    { return endOfCommand{} }
func (*process) Signal(syscall.Signal)   {}
func (*process) Leader() <-chan struct{} { return nil }
func (*process) Gone() <-chan struct{}   { return nil }
func (*process) Guarded(time.Time)       {}
