package framework

import "fmt"

// An ErrorPolicy says which states mean that what was established before must
// not be relied on any more.
type ErrorPolicy int

const (
	// ErrorOnSuspended counts every state as an error in which the client can't
	// reach an ensemble, or is not allowed to: all but Connecting and Connected.
	ErrorOnSuspended ErrorPolicy = iota + 1
	// ErrorOnLost counts only the end of the session: Lost and Closed.
	ErrorOnLost
)

// IsError reports whether the state is an error by the policy.
func (p ErrorPolicy) IsError(s State) bool {
	switch s {
	case Lost, Closed:
		return true
	case Suspended, AuthFailed, ReadOnly:
		return p == ErrorOnSuspended
	}
	return false
}

// String returns the policy's name.
func (p ErrorPolicy) String() string {
	switch p {
	case ErrorOnSuspended:
		return "ErrorOnSuspended"
	case ErrorOnLost:
		return "ErrorOnLost"
	}
	return fmt.Sprintf("ErrorPolicy(%d)", int(p))
}
