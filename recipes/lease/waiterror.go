package lease

import (
	"fmt"
	"strings"
)

// A WaitError says why a wait for a lock ended without the lock, and what the call waited for. Lock
// returns it when its context ends. It wraps the context's error. If and only if the client was not
// Connected when the wait ended, it also wraps [framework.ErrNotConnected]. So a service can
// distinguish a busy lock from an unreachable ZooKeeper, whether the outage began before or during
// the wait.
type WaitError struct {
	Path string // of the lock, as it was given to its constructor

	// Ahead is the number of contenders ahead, as far as the call saw; -1 if it saw none or the
	// lock has no queue.
	Ahead int
	// BlockedBy is the contender that the call waited for, and its Holder says whether that held the
	// lock. It is nil if the call saw none. It shows the contender at the start of the call's wait for
	// it.
	BlockedBy *Participant

	Err error // wraps the context's error
}

// Error names the contender that the call waited for, and why the wait ended.
func (e *WaitError) Error() string {
	var text strings.Builder
	text.WriteString("wait ended")
	if e.Ahead > 0 {
		fmt.Fprintf(&text, " behind %d", e.Ahead)
	}
	if b := e.BlockedBy; b != nil {
		fmt.Fprintf(&text, " (blocked by %s", b.Path)
		if m := b.Metadata; m != nil {
			fmt.Fprintf(&text, ", process %d on %s", m.PID, m.Host)
		}
		text.WriteString(")")
	}
	return text.String() + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }
