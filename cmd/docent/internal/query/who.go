package query

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// newWho returns the command who.
func newWho(app *cli.App) *cobra.Command {
	data := false
	cmd := &cobra.Command{
		Use:     "who PATH",
		Short:   "Show who holds the lock at PATH",
		GroupID: cli.ToShow,
		Long: "who shows the holders of the lock at PATH, and the last runs of a schedule. If there is no holder, it prints\n" +
			"nobody and exits with 3, even if the path does not exist or locks are only below it, which it says.",
		Args: cli.Args(1, 1),
		RunE: onLock(app, func(s inspect.Snapshot, l inspect.Lock) error { return showHolders(app, s, l, data) }),
	}
	cmd.Flags().BoolVar(&data, "data", false, "with -o json: the contenders' data, too")
	return cmd
}

func showHolders(app *cli.App, s inspect.Snapshot, l inspect.Lock, data bool) error {
	all := l.Holders()
	end := func(err error) error {
		if err == nil && len(all) == 0 {
			err = errNothing
		}
		return err
	}
	if isJSON(app) {
		if l.Contenders, s.Locks = all, nil; len(all) > 0 || l.Kind == inspect.Schedule {
			s.Locks = []inspect.Lock{l}
		}
		return end(writeSnapshot(app, s, data))
	}
	var lines []string
	for _, c := range all {
		if app.Settings().Output == cli.Names {
			lines = append(lines, cli.SafeWhole(c.Znode))
		} else {
			lines = append(lines, holderLine(s, c))
		}
	}
	switch {
	case l.Unknown:
		lines = []string{show.Unknown}
	case len(all) == 0:
		lines = []string{"nobody"}
	}
	if _, err := fmt.Fprintln(app.Out, strings.Join(lines, "\n")); err != nil {
		return err
	}
	return end(showRuns(app, l))
}

// showRuns shows the last runs of a schedule, as they began.
func showRuns(app *cli.App, l inspect.Lock) error {
	if app.Settings().Output == cli.Names || len(l.Runs) == 0 {
		return nil
	}
	var rows [][]string
	for _, r := range l.Runs {
		rows = append(rows, show.RunColumns(r))
	}
	return app.Table([]string{"SLOT", "STATE", "HOST", "FROM", "TO"}, rows)
}

// holderLine describes a holder in a line.
func holderLine(s inspect.Snapshot, c inspect.Contender) string {
	if !c.Read() {
		return "? (its znode could not be read)"
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch m := c.Meta; {
	case m == nil && c.Label != "":
		add("%s", cli.Safe(c.Label))
	case m == nil:
		add("?")
	default:
		add("%s pid %d", cli.Safe(m.Host), m.PID)
		if m.Owner != "" {
			add(`owner "%s"`, cli.Safe(m.Owner))
		}
	}
	if c.Side != inspect.Alone {
		add("%s", show.Side(c))
	}
	if c.By != inspect.Docent {
		add("by %s", show.By(c))
	}
	add("session %s since %s (%s) fence %d", show.Session(c.Session), c.Created.UTC().Format("15:04:05Z"), show.Age(s.At, c.Created), c.Czxid)
	if c.Revoked {
		add("asked to release %s ago", show.Age(s.At, c.RevokedAt))
	}
	if c.Meta != nil && c.Meta.Traceparent != "" {
		add("traceparent %s", cli.Safe(c.Meta.Traceparent))
	}
	return strings.Join(parts, " ")
}
