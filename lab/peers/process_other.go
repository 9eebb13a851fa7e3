//go:build !linux

package peers

import (
	"errors"
	"os"
	"os/exec"
)

// Detach does nothing here: a process ends with its input.
func Detach(*exec.Cmd) {}

// Stop is for Linux.
func Stop(*os.Process) error { return errors.ErrUnsupported }

// Continue is for Linux.
func Continue(*os.Process) error { return errors.ErrUnsupported }
