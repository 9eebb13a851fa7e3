package framework

import "fmt"

// An ErrorPolicy says in which states a caller must not rely any more on what was established
// before.
type ErrorPolicy int

const (
	// ErrorOnSuspended counts all states but Connecting and Connected as errors: in these the
	// client can't reach an ensemble, or is not allowed to.
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
