//go:build !linux

package zkproxy

import "time"

// nap blocks for d, rounded up as the runtime's timers do.
func nap(d time.Duration) { time.Sleep(d) }
