package usercall

import (
	"runtime"
	"strings"
)

// Require panics if an argument that must not be nil was not given. The text names the argument and
// the exported function that the user called, so the functions below it may call Require for it.
func Require(argument string, given bool) {
	if !given {
		panic(calledByUser() + ": " + argument + ": must not be nil")
	}
}

// calledByUser returns the name of the outermost function of this module on the stack, as in
// "lock.(*Mutex).Lock".
func calledByUser() string {
	const module, depth = "github.com/docent-go/docent/", 64
	pcs := make([]uintptr, depth)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	name := "docent"
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, module) || strings.Contains(frame.Function, "_test.") {
			return name
		}
		name = frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]
		if !more {
			return name
		}
	}
}
