//go:build !linux

package chaos_test

import (
	"errors"
	"os"
	"os/exec"
)

// Elsewhere there is no clock that all processes share (history.Shared), and no run.
var errUnsupported = errors.New("chaos: needs Linux")

func detach(*exec.Cmd) {}

func stop(*os.Process) error { return errUnsupported }
func cont(*os.Process) error { return errUnsupported }
