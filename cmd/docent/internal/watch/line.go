package watch

import (
	"fmt"

	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// Line returns the event as a line of text, with the time in UTC.
func Line(e change.Event) string {
	line := fmt.Sprintf("%s %-8s %s", e.At.UTC().Format("15:04:05Z"), e.What, cli.Safe(e.Path))
	switch e.What {
	case change.Live:
		return line
	case change.Stale:
		if e.Cause != nil {
			line += ": " + cli.Safe(e.Cause.Error())
		}
		return line
	case change.Granted, change.Queued, change.Released, change.Gone, change.Revoked:
	}
	line += " " + show.Side(e.Contender) + " " + show.Who(e.Contender)
	return line + note(e)
}

// note says how long the contender waited or held, and what is not certain.
func note(e change.Event) string {
	switch {
	case e.Before && e.Contender.Read():
		return ", since " + e.Contender.Created.UTC().Format("2006-01-02 15:04:05Z")
	case e.What == change.Released && e.Unsure:
		return ", held for at most " + show.Duration(e.Held)
	case e.What == change.Released:
		return ", held for " + show.Duration(e.Held)
	case e.What == change.Gone && e.Unsure:
		return ", waited for " + show.Duration(e.Waited) + ", perhaps it held shortly"
	case e.What == change.Gone || e.Waited > 0:
		return ", waited for " + show.Duration(e.Waited)
	}
	return ""
}
