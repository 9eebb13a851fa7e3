package execute

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A namedSignal is a signal by its name without SIG.
type namedSignal struct {
	name   string
	number syscall.Signal
}

// stopSignals are the signals that may stop CMD.
func stopSignals() []namedSignal {
	return []namedSignal{
		{"HUP", syscall.SIGHUP},
		{"INT", syscall.SIGINT},
		{"QUIT", syscall.SIGQUIT},
		{"KILL", syscall.SIGKILL},
		{"TERM", syscall.SIGTERM},
		{"ABRT", syscall.SIGABRT},
		{"USR1", sigUSR1},
		{"USR2", sigUSR2},
		{"ALRM", syscall.SIGALRM},
		{"PIPE", syscall.SIGPIPE},
	}
}

// parseSignal returns the signal of a flag's name for it, as in TERM, SIGTERM or 15.
func parseSignal(flag, text string) (syscall.Signal, error) {
	short := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	number, fault := strconv.Atoi(text)
	i := slices.IndexFunc(stopSignals(), func(s namedSignal) bool {
		return s.name == short || fault == nil && s.number == syscall.Signal(number)
	})
	if i < 0 {
		return 0, fmt.Errorf("%s: signal %q: must be one of %s", flag, text, strings.Join(signalNames(), ", "))
	}
	return stopSignals()[i].number, nil
}

// signalNames returns the names of the signals that may stop CMD.
func signalNames() []string {
	names := make([]string, 0, len(stopSignals()))
	for _, s := range stopSignals() {
		names = append(names, s.name)
	}
	return names
}

// name returns the name of a signal without SIG, or its number.
func name(sig syscall.Signal) string {
	for _, s := range stopSignals() {
		if s.number == sig {
			return s.name
		}
	}
	return cmp.Or(systemName(sig), strconv.Itoa(int(sig)))
}

// takeSignals has the signals that docent passes on sent to the channel, and returns it. HUP and INT stay
// ignored if they were at docent's start.
func takeSignals(to chan os.Signal) <-chan os.Signal {
	for _, sig := range passedOn() {
		if !signal.Ignored(sig) {
			signal.Notify(to, sig)
		}
	}
	return to
}
