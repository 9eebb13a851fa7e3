package query

import (
	"fmt"
	"path"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// A queue is one run of queue.
type queue struct {
	app       *cli.App
	blockedBy bool
	data      bool
}

// newQueue returns the command queue.
func newQueue(app *cli.App) *cobra.Command {
	q := &queue{app: app}
	cmd := &cobra.Command{
		Use:     "queue PATH",
		Short:   "Show the holders and waiters of the lock at PATH, in order",
		GroupID: cli.ToShow,
		Long:    "queue shows the contenders of the lock at PATH, in order. If there is none, it exits with 3.",
		Args:    cli.Args(1, 1),
		RunE:    onLock(app, q.show),
	}
	cmd.Flags().BoolVar(&q.blockedBy, "blocked-by", false, "show for each waiter what it waits for, and the root of that chain")
	cmd.Flags().BoolVar(&q.data, "data", false, "show the data that the contenders were given")
	return cmd
}

func (q *queue) show(s inspect.Snapshot, l inspect.Lock) error {
	var err error
	switch {
	case isJSON(q.app):
		err = writeSnapshot(q.app, s, q.data)
	case len(l.Contenders) == 0:
		_, err = fmt.Fprintln(q.app.Out, "nobody")
	case q.app.Settings().Output == cli.Names:
		for _, c := range l.Contenders {
			if _, err = fmt.Fprintln(q.app.Out, cli.SafeWhole(c.Znode)); err != nil {
				return err
			}
		}
	default:
		err = q.table(s, l)
	}
	if err == nil && len(l.Contenders) == 0 {
		err = errNothing
	}
	return err
}

func (q *queue) table(s inspect.Snapshot, l inspect.Lock) error {
	header := []string{"#", "STATE", "KIND", "HOST:PID", "OWNER", "SINCE", "SESSION", "BY", "ZNODE"}
	wide := q.app.Settings().Output == cli.Wide
	if q.blockedBy {
		header = append(header, "WAITS FOR", "ROOT")
	}
	if wide {
		header = append(header, "FENCE", "PARTY", "TRACEPARENT")
	}
	if q.data {
		header = append(header, "DATA")
	}
	byZnode := make(map[string]inspect.Contender, len(l.Contenders))
	for _, c := range l.Contenders {
		byZnode[c.Znode] = c
	}
	var rows [][]string
	for i, c := range l.Contenders {
		row := q.row(s, i, c)
		if q.blockedBy {
			row = append(row, blockers(c, byZnode)...)
		}
		if wide {
			row = append(row, wideCells(c)...)
		}
		if q.data {
			row = append(row, cli.Safe(string(c.Data)))
		}
		rows = append(rows, row)
	}
	return q.app.Table(header, rows)
}

func (q *queue) row(s inspect.Snapshot, i int, c inspect.Contender) []string {
	host, owner := "?", "?"
	if m := c.Meta; m != nil {
		host, owner = fmt.Sprintf("%s:%d", cli.Safe(m.Host), m.PID), "-"
		if m.Owner != "" {
			owner = cli.Safe(m.Owner)
		}
	} else if c.Label != "" {
		host = cli.Safe(c.Label)
	}
	id := "?"
	if c.Read() {
		id = show.Session(c.Session)
	}
	state := string(c.State)
	if c.Revoked {
		state += "!" // it was asked to release
	}
	return []string{
		strconv.Itoa(i), state, show.Side(c), host, owner, show.Age(s.At, c.Created), id, show.By(c), cli.Safe(path.Base(c.Znode)),
	}
}

func wideCells(c inspect.Contender) []string {
	party, trace := "-", "-"
	if c.Meta != nil && c.Meta.Party != "" {
		party = cli.Safe(c.Meta.Party)
	}
	if c.Meta != nil && c.Meta.Traceparent != "" {
		trace = cli.Safe(c.Meta.Traceparent)
	}
	return []string{strconv.FormatInt(c.Czxid, 10), party, trace}
}

// blockers returns what the contender waits for, and the holder at the root of that chain.
func blockers(c inspect.Contender, byZnode map[string]inspect.Contender) []string {
	if len(c.WaitsFor) == 0 {
		return []string{"-", "-"}
	}
	first := name(c.WaitsFor[0], byZnode)
	if n := len(c.WaitsFor) - 1; n > 0 {
		first += fmt.Sprintf(" +%d", n)
	}
	at := c
	for range len(byZnode) {
		next, ok := byZnode[lastOf(at.WaitsFor)]
		if !ok {
			break
		}
		at = next
	}
	return []string{first, show.Who(at)}
}

// lastOf returns the contender furthest ahead, "" for none.
func lastOf(znodes []string) string {
	if len(znodes) == 0 {
		return ""
	}
	return znodes[len(znodes)-1]
}

func name(znode string, byZnode map[string]inspect.Contender) string {
	if c, ok := byZnode[znode]; ok {
		return show.Who(c)
	}
	return cli.Safe(znode)
}
