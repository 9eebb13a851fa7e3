package execute

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// starterCommand is the hidden command by which docent starts itself as a starter.
const starterCommand = "__start"

// ownConnection is the descriptor of a connection with the process of docent that has started this one.
const ownConnection = 3

// startOwn starts a process of docent's own, and returns its id and a connection with it. Those of the files that are
// no standard streams follow the connection's descriptor.
func startOwn(argv []string, attr *os.ProcAttr) (pid int, connection *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, nil, err
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "connection"), os.NewFile(uintptr(ends[1]), "connection")
	defer theirs.Close()
	with := *attr
	with.Files = slices.Insert(slices.Clone(attr.Files), ownConnection, theirs)
	started, err := os.StartProcess("/proc/self/exe", argv, &with) // its file may have been replaced
	if err != nil {
		ours.Close()
		return 0, nil, err
	}
	pid = started.Pid // Release forgets it
	return pid, ours, started.Release()
}

// connection returns the connection with the process that has started this one. Writes to it have deadlines.
func connection() *os.File {
	syscall.CloseOnExec(ownConnection)
	_ = syscall.SetNonblock(ownConnection, true)
	return os.NewFile(ownConnection, "connection")
}

// Internal runs a hidden command, if args are one, and returns its exit code.
func Internal(args []string) (code int, ok bool) {
	if len(args) >= 3 && args[0] == starterCommand {
		return starter(args[1], args[2:]), true
	}
	return 0, false
}

// starter becomes CMD when docent sends the environment. Until then it waits, in CMD's process group, so
// the terminal and docent know the group before CMD runs. It returns if docent ends first or the start
// fails.
func starter(path string, argv []string) int {
	docent := connection()
	setName(starterName)
	var env []string
	if gob.NewDecoder(docent).Decode(&env) != nil {
		return 0 // docent called the start off; a part is no environment
	}
	err := syscall.Exec(path, argv, env)
	number := syscall.Errno(0)
	errors.As(err, &number)
	_, _ = docent.WriteString(strconv.Itoa(int(number))) // docent may be gone
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
