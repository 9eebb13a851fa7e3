package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of a process's times in /proc: 100 a second on every platform of Linux that
// Go has.
const clockTick = 10 * time.Millisecond

// usageOf reads what the process has used: see proc(5), /proc/PID/stat.
func usageOf(pid int) (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may have blanks
	for _, field := range fields[11:13] {                           // utime, stime
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return u, fmt.Errorf("stat of process %d: %w", pid, err)
		}
		u.cpu += time.Duration(ticks) * clockTick
	}
	return u, nil
}
