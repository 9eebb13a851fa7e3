package listeners

import (
	"fmt"
	"runtime/debug"
)

// A PanicError is what is reported of a listener that panicked.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // of the goroutine at that moment, as debug.Stack prints it
}

// Error returns one line with the value and without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("listeners: listener panicked: %v", e.Value) }

// ErrorType returns the error's type for telemetry.
func (e *PanicError) ErrorType() string { return "panic" }

// Unwrap returns the value if that is an error, and nil if not.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// report recovers from a panic and hands it to hook. It has to be deferred.
func report(hook func(*PanicError)) {
	if v := recover(); v != nil {
		hook(&PanicError{Value: v, Stack: debug.Stack()})
	}
}
