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

// stopSignals returns the names, without SIG, of the signals that may stop CMD.
func stopSignals() []string {
	return []string{"HUP", "INT", "QUIT", "KILL", "TERM", "ABRT", "USR1", "USR2", "ALRM", "PIPE"}
}

// parseSignal returns the signal of a flag's name for it, as in TERM, SIGTERM or 15.
func parseSignal(flag, text string) (syscall.Signal, error) {
	short := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if number, err := strconv.Atoi(text); err == nil {
		short = name(syscall.Signal(number))
	}
	if !slices.Contains(stopSignals(), short) {
		return 0, fmt.Errorf("%s: signal %q: must be one of %s", flag, text, strings.Join(stopSignals(), ", "))
	}
	return systemNumber(short), nil
}

// name returns the name of a signal without SIG, or its number.
func name(sig syscall.Signal) string { return cmp.Or(systemName(sig), strconv.Itoa(int(sig))) }

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
