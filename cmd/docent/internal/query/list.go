package query

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// A list is one run of ls.
type list struct {
	app        *cli.App
	scan       scanFlags
	kind       string
	heldLonger time.Duration
	waiting    bool
	sort       string
	data       bool
}

// newList returns the command ls.
func newList(app *cli.App) *cobra.Command {
	l := &list{app: app}
	cmd := &cobra.Command{
		Use:     "ls [ROOT]",
		Short:   "List the locks below ROOT",
		GroupID: cli.ToShow,
		Long: "ls lists the locks at ROOT and below it that have a holder or a waiter, and the schedules with their\n" +
			"last runs. It reads the znodes of the holders; with -o json it reads all contenders. ROOT is / by default. If ROOT does not exist, ls\n" +
			"exits with 3. It shortens long names; -o name, wide and json have them whole.",
		Args:    cli.Args(0, 1),
		PreRunE: func(_ *cobra.Command, args []string) error { return errors.Join(l.check(), l.scan.check(args)) },
		RunE:    onLocks(app, &l.scan, func() bool { return !isJSON(app) }, l.show),
	}
	l.scan.define(cmd)
	cmd.Flags().StringVar(&l.kind, "kind", "", "only locks of this `kind`: mutex, readwrite, semaphore, leader, exclusive or schedule")
	cli.DurationVar(cmd.Flags(), &l.heldLonger, "held-longer", "", 0, "only locks that are held for longer than this")
	cmd.Flags().BoolVar(&l.waiting, "waiting", false, "only locks with waiters")
	cmd.Flags().StringVar(&l.sort, "sort", "path", "sort by this `key`: path, age (the longest hold first) or waiting (the most waiters first)")
	cmd.Flags().BoolVar(&l.data, "data", false, "with -o json: the contenders' data, too")
	cli.Choices(cmd, "kind", kinds()...)
	cli.Choices(cmd, "sort", sortKeys()...)
	return cmd
}

func (l *list) show(s inspect.Snapshot, _ string) error {
	s.Locks = slices.DeleteFunc(s.Locks, func(lock inspect.Lock) bool { return !l.wanted(lock, s.At) })
	l.order(s.Locks)
	return l.write(s)
}

func kinds() []string {
	return []string{"mutex", "readwrite", "semaphore", "leader", "exclusive", "schedule"}
}

func sortKeys() []string { return []string{"path", "age", "waiting"} }

func (l *list) check() error {
	if l.kind != "" && !slices.Contains(kinds(), l.kind) {
		return cli.Usage(fmt.Errorf("--kind %q: must be mutex, readwrite, semaphore, leader, exclusive or schedule", l.kind))
	}
	if !slices.Contains(sortKeys(), l.sort) {
		return cli.Usage(fmt.Errorf("--sort %q: must be path, age or waiting", l.sort))
	}
	return nil
}

func (l *list) wanted(lock inspect.Lock, now time.Time) bool {
	row := show.RowOf(&lock)
	switch {
	case l.kind != "" && l.kind != string(lock.Kind), l.waiting && row.Waiting == 0:
		return false
	case l.heldLonger > 0:
		return !row.Held.IsZero() && now.Sub(row.Held) > l.heldLonger
	}
	return true
}

func (l *list) order(locks []inspect.Lock) {
	slices.SortStableFunc(locks, func(a, b inspect.Lock) int {
		x, y := show.RowOf(&a), show.RowOf(&b)
		switch l.sort {
		case "age":
			return show.EarliestFirst(x.Held, y.Held)
		case "waiting":
			return cmp.Compare(y.Waiting, x.Waiting)
		}
		return 0
	})
}

func (l *list) write(s inspect.Snapshot) error {
	switch l.app.Settings().Output {
	case cli.JSON, cli.JSONLines:
		return writeSnapshot(l.app, s, l.data)
	case cli.Names:
		for _, lock := range s.Locks {
			if _, err := fmt.Fprintln(l.app.Out, cli.SafeWhole(lock.Path)); err != nil {
				return err
			}
		}
		return nil
	}
	return l.table(s)
}

func (l *list) table(s inspect.Snapshot) error {
	var rows [][]string
	header := []string{"LOCK", "KIND", "HOLDER", "FOR", "WAITING"}
	runs := slices.ContainsFunc(s.Locks, func(lock inspect.Lock) bool { return lock.Kind == inspect.Schedule })
	if runs {
		header = append(header, "LAST RUN")
	}
	for _, lock := range s.Locks {
		r := show.RowOf(&lock)
		row := []string{cli.SafeWhole(lock.Path), string(lock.Kind), show.Holders(lock), show.Since(s.At, r.Held), strconv.Itoa(r.Waiting)}
		if runs {
			row = append(row, show.LastRun(lock))
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		if err := l.app.Table(header, rows); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%s, %d waiting", show.Counted(len(s.Locks), "lock"), s.Waiting())
	if len(s.Unread) > 0 {
		line += "; " + unreadLine(s)
	}
	_, err := fmt.Fprintln(l.app.Out, line)
	return err
}
