package inspect

import "time"

// A View is what a [Live] knows at a moment. It never changes.
type View struct {
	Snapshot // at the time At, by this process's clock; complete once all was read

	State ViewState
	Since time.Time // of the state
	Cause error     // why the state is not Current; nil if it is
}

// A ViewState is how well a [Live] knows the locks.
type ViewState string

// The states of a view.
const (
	Connecting ViewState = "connecting" // to the ensemble, for the first time
	Scanning   ViewState = "scanning"   // what is there has yet to be read
	Current    ViewState = "live"       // the ensemble notifies of every change
	Stale      ViewState = "stale"      // the connection is lost, or what changed meanwhile is yet to be read
)
