package main

import (
	"bytes"
	"fmt"
	"os"
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
