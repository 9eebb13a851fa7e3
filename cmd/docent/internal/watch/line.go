package watch

import (
	"fmt"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// Line returns the event as a line of text, with the time in UTC.
func Line(e Event) string {
	line := fmt.Sprintf("%s %-8s %s", e.At.UTC().Format("15:04:05Z"), e.What, cli.Safe(e.Path))
	switch e.What {
	case Live:
		return line
	case Stale:
		if e.Cause != nil {
			line += ": " + cli.Safe(e.Cause.Error())
		}
		return line
	case Granted, Queued, Released, Gone, Revoked:
	}
	line += " " + show.Side(e.Contender) + " " + show.Who(e.Contender)
	return line + note(e)
}

// note says how long the contender waited or held, and what is not certain.
func note(e Event) string {
	switch {
	case e.Before && e.Contender.Read():
		return ", since " + e.Contender.Created.UTC().Format("2006-01-02 15:04:05Z")
	case e.What == Released && e.Unsure:
		return ", held for at most " + show.Duration(e.Held)
	case e.What == Released:
		return ", held for " + show.Duration(e.Held)
	case e.What == Gone && e.Unsure:
		return ", waited for " + show.Duration(e.Waited) + ", perhaps it held shortly"
	case e.What == Gone || e.Waited > 0:
		return ", waited for " + show.Duration(e.Waited)
	}
	return ""
}
