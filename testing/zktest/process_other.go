//go:build !unix

package zktest

import "errors"

// errUnsupported is in the error of a start: processes can't be managed here.
var errUnsupported = errors.New("zktest: needs a Unix system")

// A process can't be managed here: no start succeeds, and nothing else is called.
type process struct {
	done  chan struct{}
	state string
}

func startProcess(layout, []string) (*process, error) { return nil, errUnsupported }

func (p *process) pid() int         { return 0 }
func (p *process) gone() bool       { return true }
func (p *process) freeze() error    { return errUnsupported }
func (p *process) thaw() error      { return errUnsupported }
func (p *process) kill() error      { return errUnsupported }
func (p *process) terminate() error { return errUnsupported }
