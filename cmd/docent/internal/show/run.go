package show

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/recipes/schedule"
)

// Unknown is shown instead of a schedule's runs if they are not known.
const Unknown = "unknown: the data are not a schedule's"

// LastRun describes the last run of a schedule in a line: the slot, what became of it, and where. "-" for other locks,
// and if there is none.
func LastRun(l inspect.Lock) string {
	switch {
	case l.Unknown:
		return Unknown
	case len(l.Runs) == 0:
		return "-"
	}
	r := RunColumns(l.Runs[len(l.Runs)-1])
	return fmt.Sprintf("%s %s %s", r[0], r[1], r[2])
}

// RunColumns returns a run's slot, state, host, begin and end, in text that a terminal can show.
func RunColumns(r schedule.Run) []string {
	return []string{
		instant(r.Slot), cli.Safe(string(r.State)), cli.Safe(fmt.Sprintf("%s:%d", r.Host, r.PID)), instant(r.From), instant(r.To),
	}
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
