package inspect

import (
	"fmt"
	"time"
)

// A View is what a [Live] knows at a moment. It never changes.
type View struct {
	Snapshot // at the time At, by this process's clock; complete once all was read

	State ViewState
	Since time.Time // of the state
	Cause error     // why the state is not Current; nil if it is
}

// A ViewState is how well a [Live] knows the locks.
type ViewState int

// The states of a view.
const (
	Connecting ViewState = iota + 1 // to the ensemble, for the first time
	Scanning                        // what is there has yet to be read
	Current                         // the ensemble notifies of every change
	Stale                           // the connection is lost, or what changed meanwhile is yet to be read
)

// String returns the state's name, as in "scanning".
func (s ViewState) String() string {
	if s < Connecting || s > Stale {
		return fmt.Sprintf("ViewState(%d)", int(s))
	}
	return [...]string{"connecting", "scanning", "live", "stale"}[s-Connecting]
}
