//go:build unix

package execute

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sigBackgroundRead is what stops a background process that reads the terminal.
const sigBackgroundRead = syscall.SIGTTIN

// passedOn returns the signals that docent takes. CMD's group gets them, but for TSTP, because a holder
// that is stopped blocks all waiters.
func passedOn() []syscall.Signal {
	return []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP,
	}
}

// keptBack reports whether a signal is not for CMD.
func keptBack(sig syscall.Signal) bool { return sig == syscall.SIGTSTP }

// systemNumber returns the signal of a name without SIG.
func systemNumber(name string) syscall.Signal { return unix.SignalNum("SIG" + name) }

// systemName returns the system's name of a signal without SIG, "" if it has none.
func systemName(sig syscall.Signal) string { return strings.TrimPrefix(unix.SignalName(sig), "SIG") }
