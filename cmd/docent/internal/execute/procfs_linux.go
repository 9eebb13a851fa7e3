package execute

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A processEntry is a process as /proc shows it.
type processEntry struct {
	pid, parent, group int
	started            string // with the number it tells a process from a later one of the same number
	state              byte
	name               string
}

// processes returns all processes that /proc shows.
func processes() ([]processEntry, error) {
	pids, err := numbers("/proc")
	list, fault := processesOf(pids)
	return list, errors.Join(err, fault)
}

// processesOf returns those of the processes that have not been reaped. With an error the list lacks
// some.
func processesOf(pids []int) (list []processEntry, fault error) {
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil && !isGone(err) {
			fault = err
		}
		if e, ok := parseStat(pid, stat); ok {
			list = append(list, e)
		}
	}
	return list, fault
}

// isGone reports whether the error is that of a process or thread that has been reaped.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// numbers returns the names of the directory that are numbers.
func numbers(path string) ([]int, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	var list []int
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			list = append(list, number)
		}
	}
	return list, err
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
	e := processEntry{pid: pid, parent: parent, group: group, started: fields[19], state: fields[0][0], name: string(stat[begin+1 : end])}
	return e, errors.Join(parentErr, groupErr) == nil
}

// children returns a process's children, ended ones included. A kernel may lack the lists of children:
// then children looks at all processes. With an error, as when no more files may be opened, the list
// lacks some.
func children(parent int) ([]int, error) {
	threads, fault := numbers(fmt.Sprintf("/proc/%d/task", parent))
	if isGone(fault) {
		return nil, nil
	}
	var list []int
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, thread))
		switch {
		case errors.Is(err, fs.ErrNotExist) && thread == parent:
			all, err := processes()
			return childrenAmong(all, parent), err
		case err != nil && !isGone(err):
			fault = err
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list, fault
}

func childrenAmong(all []processEntry, parent int) []int {
	var list []int
	for _, e := range all {
		if e.parent == parent {
			list = append(list, e.pid)
		}
	}
	return list
}

// descendants returns the processes that run below root: its children, their children, and so on. It
// leaves out those of except, and what is below them. With an error the list lacks some.
func descendants(root int, except []int) (list []processEntry, fault error) {
	below := []int{root}
	for i := 0; i < len(below); i++ {
		found, err := children(below[i])
		fault = errors.Join(fault, err)
		for _, pid := range found {
			if !slices.Contains(except, pid) && !slices.Contains(below, pid) {
				below = append(below, pid)
			}
		}
	}
	list, err := processesOf(below[1:])
	return slices.DeleteFunc(list, func(e processEntry) bool { return !running(e) }), errors.Join(fault, err)
}

// running reports whether the process has not ended.
func running(e processEntry) bool { return e.state != 'Z' && e.state != 'X' }

// describe names the processes for a message.
func describe(list []processEntry) []string {
	names := make([]string, 0, len(list))
	for _, e := range list {
		names = append(names, fmt.Sprintf("%s (pid %d)", cli.Safe(e.name), e.pid))
	}
	return names
}

// maxRounds bounds how often signalAll looks for processes that were started meanwhile.
const maxRounds = 100

// signalAll sends the signal to the processes that find returns, and looks again until find returns no
// further ones: those that it has not seen may have been started meanwhile. It returns how many got the
// signal, and those that the system did not let have it.
func signalAll(sig syscall.Signal, find func() ([]processEntry, error)) (sent int, refused []processEntry) {
	type identity struct {
		pid     int
		started string
	}
	seen := make(map[identity]bool)
	for range maxRounds {
		before := len(seen)
		list, _ := find() // what it lacks, a later round or call finds
		for _, e := range list {
			if id := (identity{e.pid, e.started}); !seen[id] {
				seen[id] = true
				switch err := signalTo(e, sig); {
				case err == nil:
					sent++
				case !errors.Is(err, unix.ESRCH):
					refused = append(refused, e)
				}
			}
		}
		if len(seen) == before {
			break
		}
	}
	return sent, refused
}

// signalTo sends the signal to the process, and not to a later one of the same number.
func signalTo(e processEntry, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(e.pid, 0)
	if err != nil { // ESRCH, or the kernel is older than 5.3, or no more files may be opened
		return unix.Kill(e.pid, sig)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	if now, _ := processesOf([]int{e.pid}); len(now) != 1 || now[0].started != e.started {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// refusing returns those of the processes that this one may not send signals to: they run as another
// user.
func refusing(list []processEntry) []processEntry {
	var found []processEntry
	for _, e := range list {
		if errors.Is(unix.Kill(e.pid, 0), unix.EPERM) {
			found = append(found, e)
		}
	}
	return found
}
