//go:build !unix

package execute

import "syscall"

const sigBackgroundRead = syscall.Signal(0)

func passedOn() []syscall.Signal { return []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} }

func keptBack(syscall.Signal) bool { return false }

// systemNumber and systemName are for exec, which refuses to run there.
func systemNumber(string) syscall.Signal { return 0 }

func systemName(syscall.Signal) string { return "" }
