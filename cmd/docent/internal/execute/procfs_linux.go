package execute

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A processEntry is a process as /proc shows it.
type processEntry struct {
	pid, parent, group int
	state              byte
	name               string
}

// processes returns all processes that /proc shows.
func processes() []processEntry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []processEntry
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		if e, ok := parseStat(pid, stat); ok {
			list = append(list, e)
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
	e := processEntry{pid: pid, name: string(stat[begin+1 : end])}
	_, err := fmt.Sscanf(string(stat[end+1:]), " %c %d %d", &e.state, &e.parent, &e.group)
	return e, err == nil
}

// groupMembers describes the processes of the group that have not ended.
func groupMembers(group int) []string {
	return describe(func(e processEntry) bool { return e.group == group })
}

// children describes this process's children that have not ended.
func children() []string {
	self := os.Getpid()
	return describe(func(e processEntry) bool { return e.parent == self })
}

func describe(chosen func(processEntry) bool) []string {
	var list []string
	for _, e := range processes() {
		if e.state != 'Z' && e.state != 'X' && chosen(e) {
			list = append(list, fmt.Sprintf("%s (pid %d)", cli.Safe(e.name), e.pid))
		}
	}
	return list
}
