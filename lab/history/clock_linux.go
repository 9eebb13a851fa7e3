package history

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Shared says that [Monotonic] is one clock for all processes of the machine.
const Shared = true

// clockMonotonic is CLOCK_MONOTONIC, which goes on while a process is stopped.
const clockMonotonic = 1

// Monotonic returns the machine's monotonic clock, in nanoseconds.
func Monotonic() int64 {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic(fmt.Sprint("history: the monotonic clock: ", errno)) // every Linux has it
	}
	return ts.Nano()
}
