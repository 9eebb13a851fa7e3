//go:build !unix

package interop_test

import (
	"errors"
	"os"
	"os/exec"
)

var errUnsupported = errors.New("interop: drivers need Unix")

func guarded([]string) (cmd *exec.Cmd, guard *os.File, closeStarted func(), err error) {
	return nil, nil, nil, errUnsupported
}

func dismiss(*os.File) error { return errUnsupported }

func freeze(*os.Process) error { return errUnsupported }
func thaw(*os.Process) error   { return errUnsupported }

func alive(int) bool { return false }
