// Package usercall calls functions of the user's on goroutines of the library's.
package usercall

import (
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"
)

// Guard calls fn. If fn panics, Guard logs an error, with the stack and the name of the option or
// method that fn was passed to, and returns. A panic has no caller to reach, and must not end the
// process. If fn calls runtime.Goexit, the goroutine ends.
func Guard(log *zap.Logger, name string, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("a function of the user's panicked", zap.String("function", name),
				zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
		}
	}()
	fn()
}

// GuardExit is Guard for a caller that has to go on if fn calls runtime.Goexit, which it logs, too. It
// calls fn on a goroutine of its own, and waits for that.
func GuardExit(log *zap.Logger, name string, fn func()) {
	done := make(chan struct{})
	go func() { // ends with fn, and GuardExit waits for it
		defer close(done)
		returned := false
		defer func() {
			if !returned {
				log.Error("a function of the user's ended its goroutine", zap.String("function", name))
			}
		}()
		Guard(log, name, fn)
		returned = true
	}()
	<-done
}
