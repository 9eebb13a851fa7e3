package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// resident returns the process's memory and the most it has been since resetPeak, in
// bytes.
func resident(pid int) (now, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(status) {
		var kib int64
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %d kB", &kib); n == 1 {
			now = kib << 10
		}
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); n == 1 {
			peak = kib << 10
		}
	}
	return now, peak, nil
}

// resetPeak makes the process's peak its present memory.
func resetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// clockTick is the unit of a process's times in /proc: 100 a second on every platform of Linux that
// Go has.
const clockTick = 10 * time.Millisecond

// usageOf returns the processor time that the process has used since it began, in all its threads: see
// proc(5), /proc/PID/stat.
func usageOf(pid int) (cpu time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may have blanks
	for _, field := range fields[11:13] {                           // utime, stime
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stat of process %d: %w", pid, err)
		}
		cpu += time.Duration(ticks) * clockTick
	}
	return cpu, nil
}
