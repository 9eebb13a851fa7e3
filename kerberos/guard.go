package kerberos

import (
	"errors"
	"fmt"
	"runtime"
)

// guard turns a panic into an error. The library that reads the messages of KDCs and servers
// indexes some of their lists unchecked, and no reply may end the process.
func guard(err *error) {
	switch fault := recover().(type) {
	case nil:
	case runtime.Error:
		*err = fmt.Errorf("Kerberos: unreadable message: %w", fault)
	default:
		*err = errors.New("Kerberos: unreadable message")
	}
}
