package lease

import "fmt"

// A LossPolicy says when a lease is lost while there is no connection.
type LossPolicy int

const (
	// AtDeadline keeps a lease until its session's deadline, the last moment at which the session
	// certainly exists. It is the default.
	AtDeadline LossPolicy = iota + 1
	// OnSuspend ends a lease as soon as the connection breaks. It is for work that should rather
	// stop too often than run to the deadline.
	OnSuspend
)

// String returns the policy's name.
func (p LossPolicy) String() string {
	switch p {
	case AtDeadline:
		return "AtDeadline"
	case OnSuspend:
		return "OnSuspend"
	}
	return fmt.Sprintf("LossPolicy(%d)", int(p))
}
