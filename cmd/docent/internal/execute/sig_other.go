//go:build !unix

package execute

import "syscall"

// The platform has no such signals, and exec refuses to run there.
const sigUSR1, sigUSR2 = syscall.Signal(10), syscall.Signal(12)

const sigBackgroundRead = syscall.Signal(0)

func passedOn() []syscall.Signal { return []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} }

func keptBack(syscall.Signal) bool { return false }

// systemName returns the system's name of a signal without SIG, "" if it has none.
func systemName(syscall.Signal) string { return "" }
