package execute

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A processEntry is a process as /proc shows it.
type processEntry struct {
	pid, parent, group int
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
	if len(fields) < 3 {
		return processEntry{}, false
	}
	parent, parentErr := strconv.Atoi(fields[1])
	group, groupErr := strconv.Atoi(fields[2])
	e := processEntry{pid: pid, parent: parent, group: group, state: fields[0][0], name: string(stat[begin+1 : end])}
	return e, errors.Join(parentErr, groupErr) == nil
}

// children returns this process's children, ended ones included. A kernel may lack the lists of
// children: then children looks at all processes. With an error, as when no more files may be opened,
// the list lacks some.
func children() ([]int, error) {
	self := os.Getpid()
	threads, fault := numbers("/proc/self/task")
	var list []int
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", thread))
		switch {
		case errors.Is(err, fs.ErrNotExist) && thread == self:
			all, err := processes()
			return childrenAmong(all, self), err
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

// groupMembers describes the processes of the group but its leader. Of those that have ended, it has
// this process's children alone, because another parent may never reap its own.
func groupMembers(group int) ([]string, error) {
	self := os.Getpid()
	all, err := processes()
	return describe(all, func(e processEntry) bool {
		return e.group == group && e.pid != group && (running(e) || e.parent == self)
	}), err
}

// running reports whether the process has not ended.
func running(e processEntry) bool { return e.state != 'Z' && e.state != 'X' }

func describe(list []processEntry, chosen func(processEntry) bool) []string {
	var names []string
	for _, e := range list {
		if chosen(e) {
			names = append(names, fmt.Sprintf("%s (pid %d)", cli.Safe(e.name), e.pid))
		}
	}
	return names
}
