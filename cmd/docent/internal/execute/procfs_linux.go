package execute

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A processEntry is a process as /proc shows it.
type processEntry struct {
	pid, parent, group int
	state              byte
	name               string
}

// processes returns all processes that /proc shows.
func processes() []processEntry { return processesOf(numbers("/proc")) }

// processesOf returns those of the processes that have not been reaped.
func processesOf(pids []int) []processEntry {
	var list []processEntry
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		if e, ok := parseStat(pid, stat); ok {
			list = append(list, e)
		}
	}
	return list
}

// numbers returns the names of the directory that are numbers.
func numbers(path string) []int {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []int
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
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
	if len(fields) < 3 {
		return processEntry{}, false
	}
	parent, parentErr := strconv.Atoi(fields[1])
	group, groupErr := strconv.Atoi(fields[2])
	e := processEntry{pid: pid, parent: parent, group: group, state: fields[0][0], name: string(stat[begin+1 : end])}
	return e, errors.Join(parentErr, groupErr) == nil
}

// children returns this process's children, ended ones included. A kernel may lack the lists of
// children: then children looks at all processes.
func children() []int {
	var list []int
	self := os.Getpid()
	for _, thread := range numbers("/proc/self/task") {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", thread))
		if errors.Is(err, fs.ErrNotExist) && thread == self {
			return childrenAmong(processes(), self)
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
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
func groupMembers(group int) []string {
	self := os.Getpid()
	return describe(processes(), func(e processEntry) bool {
		return e.group == group && e.pid != group && (running(e) || e.parent == self)
	})
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
