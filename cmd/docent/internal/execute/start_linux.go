package execute

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// starterCommand is the hidden command by which docent starts itself as a starter.
const starterCommand = "__start"

// The descriptors of a starter.
const (
	starterIn  = 3 // CMD's environment; docent closes it to call the start off
	starterOut = 4 // why CMD can't be executed
)

// Internal runs a hidden command, if args are one, and returns its exit code.
func Internal(args []string) (code int, ok bool) {
	if len(args) >= 3 && args[0] == starterCommand {
		return starter(args[1], args[2:]), true
	}
	return 0, false
}

// executable returns the path of this program for its own processes, which have its name in ps then. The file may
// have been replaced.
func executable() string {
	const self = "/proc/self/exe"
	path, err := os.Readlink(self)
	if err != nil {
		return self
	}
	named, err := os.Stat(path)
	if err != nil {
		return self
	}
	if own, err := os.Stat(self); err != nil || !os.SameFile(named, own) {
		return self
	}
	return path
}

// starter becomes CMD when docent sends the environment. Until then it waits, in CMD's process group, so
// the terminal and docent know the group before CMD runs. It returns if docent ends first or the start
// fails.
func starter(path string, argv []string) int {
	syscall.CloseOnExec(starterIn)
	syscall.CloseOnExec(starterOut)
	var env []string
	if gob.NewDecoder(os.NewFile(starterIn, "environment")).Decode(&env) != nil {
		return 0 // docent called the start off; a part is no environment
	}
	err := syscall.Exec(path, argv, env)
	number := syscall.Errno(0)
	errors.As(err, &number)
	_, _ = os.NewFile(starterOut, "fault").WriteString(strconv.Itoa(int(number))) // docent may be gone
	return 126
}

// readFault returns why the starter could not execute CMD, or 0 if it did.
func readFault(r io.Reader) (unix.Errno, error) {
	text, err := io.ReadAll(r)
	if err != nil || len(text) == 0 {
		return 0, err
	}
	number, err := strconv.Atoi(string(text))
	return unix.Errno(number), err
}
