package execute

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// procDirectory returns /proc as it was when docent began: CMD may unmount it, or cover it, while it runs.
var procDirectory = sync.OnceValues(func() (int, error) { //nolint:gochecknoglobals // opened once
	return unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
})

// openProc opens a file of /proc.
func openProc(name string) (*os.File, error) {
	dir, err := procDirectory()
	if err != nil {
		return nil, fmt.Errorf("open /proc: %w", err)
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/proc/" + name, Err: err}
	}
	return os.NewFile(uintptr(fd), "/proc/"+name), nil
}

// readProc reads a file of /proc.
func readProc(name string) ([]byte, error) {
	file, err := openProc(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// checkProc returns an error unless /proc is of this process's own pid namespace. In another one's, the same
// numbers are those of other processes.
func checkProc() error {
	var system unix.Statfs_t
	dir, err := procDirectory()
	if err == nil {
		err = unix.Fstatfs(dir, &system)
	}
	if err != nil {
		return fmt.Errorf("/proc: %w: %w", err, errProc)
	}
	if system.Type != unix.PROC_SUPER_MAGIC {
		return fmt.Errorf("/proc is no proc file system: %w", errProc)
	}
	status, err := readProc("self/status")
	if err != nil {
		return fmt.Errorf("%w: %w", err, errProc)
	}
	for line := range strings.Lines(string(status)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return checkNumbers(strings.Fields(numbers), os.Getpid())
		}
	}
	self, err := os.Readlink("/proc/self") // Linux has NSpid since 4.1
	return errors.Join(err, checkNumbers([]string{self}, os.Getpid()))
}

// checkNumbers checks the numbers of this process, from the namespace that /proc shows to its own.
func checkNumbers(numbers []string, pid int) error {
	if len(numbers) == 1 && numbers[0] == strconv.Itoa(pid) {
		return nil
	}
	return fmt.Errorf("/proc shows process %d as %s: %w", pid, strings.Join(numbers, " in "), errProc)
}

// A processEntry is a process as /proc shows it.
type processEntry struct {
	pid, parent, group int
	threads            int    // ended ones included, until they are reaped
	started            string // with the number it tells a process from a later one of the same number
	state              byte   // of the main thread; stateHidden if /proc hides the process
	name               string
}

// stateHidden is the state of a process that runs, and that /proc hides because it is another user's.
const stateHidden = '?'

// running reports whether the process has not ended. The state is that of its main thread, which may end
// before the others.
func running(e processEntry) bool { return e.threads > 1 || strings.IndexByte("ZXx", e.state) < 0 }

// entryOf returns the process of this number. It reports false if there is none, and an error if it can't tell.
func entryOf(pid int) (processEntry, bool, error) {
	stat, err := readProc(fmt.Sprintf("%d/stat", pid))
	if err == nil {
		e, ok := parseStat(pid, stat)
		return e, ok, nil
	}
	hidden := isGone(err) || errors.Is(err, fs.ErrPermission)
	switch alive := unix.Kill(pid, 0); {
	case errors.Is(alive, unix.ESRCH):
		return processEntry{}, false, nil
	case hidden:
		return processEntry{pid: pid, state: stateHidden, name: "a process that /proc hides"}, true, nil
	}
	return processEntry{}, false, err
}

// isGone reports whether the error is that of a process or thread that has been reaped.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// numbers returns the names of the directory of /proc that are numbers.
func numbers(name string) ([]int, error) {
	dir, err := openProc(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	return parseNumbers(names), err
}

// parseNumbers returns those of the words that are numbers.
func parseNumbers(words []string) []int {
	var list []int
	for _, word := range words {
		if number, err := strconv.Atoi(word); err == nil {
			list = append(list, number)
		}
	}
	return list
}

// parseStat parses "pid (name) state parent group …". The name may contain anything.
func parseStat(pid int, stat []byte) (processEntry, bool) {
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if begin < 0 || end < begin {
		return processEntry{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 20 {
		return processEntry{}, false
	}
	parent, parentErr := strconv.Atoi(fields[1])
	group, groupErr := strconv.Atoi(fields[2])
	threads, threadsErr := strconv.Atoi(fields[17])
	e := processEntry{
		pid: pid, parent: parent, group: group, threads: threads, started: fields[19], state: fields[0][0],
		name: string(stat[begin+1 : end]),
	}
	return e, errors.Join(parentErr, groupErr, threadsErr) == nil
}

// children returns a process's children, ended ones included. The children of an ended process are those of the main
// thread of the process that they are left to. A kernel may lack the lists of children: then children looks at all
// processes. With an error, as when no more files may be opened, the list lacks some.
func children(parent int) (list []int, fault error) {
	threads, fault := numbers(fmt.Sprintf("%d/task", parent))
	if isGone(fault) {
		return nil, nil
	}
	for _, thread := range threads {
		text, err := readProc(fmt.Sprintf("%d/task/%d/children", parent, thread))
		if errors.Is(err, fs.ErrNotExist) && thread == parent {
			return childrenAmongAll(parent)
		}
		if !isGone(err) {
			fault = errors.Join(fault, err)
		}
		list = append(list, parseNumbers(strings.Fields(string(text)))...)
	}
	return list, fault
}

func childrenAmongAll(parent int) (list []int, fault error) {
	pids, fault := numbers(".")
	for _, pid := range pids {
		e, ok, err := entryOf(pid)
		if ok && e.parent == parent {
			list = append(list, pid)
		}
		fault = errors.Join(fault, err)
	}
	return list, fault
}

// walk calls visit for each process that runs below root, parents first and as soon as it is found: its
// children, their children, and so on. It leaves out those that were seen and what is below them, and adds the numbers
// of all to seen. For what is below a process for which visit returns false, it calls nothing. With an error it may have
// missed some.
func walk(root int, seen map[int]bool, visit func(processEntry) bool) (fault error) {
	type place struct {
		pid   int
		quiet bool
	}
	for below := []place{{root, false}}; len(below) > 0; below = below[1:] {
		found, err := children(below[0].pid)
		fault = errors.Join(fault, err)
		for _, pid := range found {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			next := place{pid, below[0].quiet}
			if !next.quiet {
				e, ok, err := entryOf(pid)
				fault = errors.Join(fault, err)
				next.quiet = ok && running(e) && !visit(e)
			}
			below = append(below, next)
		}
	}
	return fault
}
