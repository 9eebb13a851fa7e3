package zkproxy

import (
	"syscall"
	"time"
)

// nap blocks a thread for d, which is exact where a timer of the runtime rounds up to
// a millisecond. A signal makes it return early; latency may then be a little
// short.
func nap(d time.Duration) {
	left := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&left, nil)
}
