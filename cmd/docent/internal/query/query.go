// Package query is the commands that show locks, and those that end a hold: ls, who, queue, tree, wait,
// doctor, revoke, break and schema.
package query

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
)

// Commands returns the constructors of the commands.
func Commands() []func(*cli.App) *cobra.Command {
	return []func(*cli.App) *cobra.Command{newList, newWho, newQueue, newTree, newWait, newDoctor, newRevoke, newBreak, newSchema}
}

// errNothing ends a command that found nothing, and has said so.
var errNothing = &cli.ExitError{Code: cli.CodeNothing}

// withClient calls fn with a client, which need not be connected. If the reader of the output has gone, as
// with "| head", it ends the session without an error.
func withClient(app *cli.App, fn func(*framework.Client) error) error {
	signal.Ignore(syscall.SIGPIPE) // a write fails instead
	c, err := app.Client()
	if err != nil {
		return err
	}
	if err = fn(c); errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	return errors.Join(err, c.Close())
}

// connected is withClient with a client that is connected.
func connected(ctx context.Context, app *cli.App, fn func(*framework.Client) error) error {
	return withClient(app, func(c *framework.Client) error {
		if err := app.AwaitConnected(ctx, c); err != nil {
			return err
		}
		return fn(c)
	})
}

// A run is what cobra calls when a command runs.
type run = func(*cobra.Command, []string) error

// onClient returns the run of a command with one argument, which needs a client.
func onClient(app *cli.App, fn func(ctx context.Context, c *framework.Client, path string) error) run {
	return func(cmd *cobra.Command, args []string) error {
		if err := framework.ValidatePath(args[0]); err != nil {
			return cli.Usage(err)
		}
		return connected(cmd.Context(), app, func(c *framework.Client) error { return fn(cmd.Context(), c, args[0]) })
	}
}

// onLock returns the run of a command that shows the lock at its argument.
func onLock(app *cli.App, show func(inspect.Snapshot, inspect.Lock) error) run {
	return onClient(app, func(ctx context.Context, c *framework.Client, path string) error {
		s, l, err := readLock(ctx, app, c, path)
		if err != nil {
			return err
		}
		warn(app, s)
		if l.Kind == "" && !isJSON(app) {
			return absent(ctx, app, c, path)
		}
		return show(s, l)
	})
}

// onLocks returns the run of a command that shows the locks below ROOT.
func onLocks(app *cli.App, flags *scanFlags, holdersOnly func() bool, show func(s inspect.Snapshot, from string) error) run {
	return func(cmd *cobra.Command, args []string) error {
		if err := flags.check(args); err != nil {
			return err
		}
		return connected(cmd.Context(), app, func(c *framework.Client) error {
			s, err := scan(cmd.Context(), app, c, cli.Root(args), flags.limits(holdersOnly()))
			if err == nil {
				err = missing(cmd.Context(), c, cli.Root(args), s)
			}
			if err != nil {
				return err
			}
			warn(app, s)
			return show(s, cli.Root(args))
		})
	}
}

// absent says that no client has the lock at the path, and if no lock is there, why.
func absent(ctx context.Context, app *cli.App, c *framework.Client, path string) error {
	within, cancel := bounded(ctx, app)
	defer cancel()
	below, err := inspect.Scan(within, c, path, inspect.Limits{Max: 100, HoldersOnly: true})
	if err == nil {
		err = missing(within, c, path, below)
	}
	late := err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded)
	text := "nobody"
	switch {
	case errors.Is(err, framework.ErrNoNode):
		text = fmt.Sprintf("nobody: %s does not exist (a free lock's directory may be deleted; check the path)", cli.Safe(path))
	case err != nil && !late:
		return err
	case slices.ContainsFunc(below.Locks, func(l inspect.Lock) bool { return l.Path != path }): // one at the path has just come
		text = "no lock: it has locks below it, see docent ls"
	case late || !below.Complete:
		app.Say("--timeout or a limit ended the search for locks below %s: see docent ls", cli.Safe(path))
	}
	if _, err := fmt.Fprintln(app.Out, text); err != nil {
		return err
	}
	return errNothing
}

// bounded returns ctx with the time of --timeout.
func bounded(ctx context.Context, app *cli.App) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, app.Settings().Timeout)
}

// scan looks for locks. If --timeout ends the search, it returns what was found.
func scan(ctx context.Context, app *cli.App, c *framework.Client, from string, limits inspect.Limits) (inspect.Snapshot, error) {
	within, cancel := bounded(ctx, app)
	defer cancel()
	p := progress{app: app, began: time.Now()}
	limits.OnProgress = p.show
	s, err := inspect.Scan(within, c, from, limits)
	p.clear()
	if err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		app.Say("--timeout %v ended the search: there may be further locks", app.Settings().Timeout)
		return s, nil
	}
	if err == nil && !s.Complete {
		app.Say("a limit ended the search: see --depth and --max")
	}
	return s, err
}

// A progress shows on a terminal how far a search is, once it has taken quietly.
type progress struct {
	app          *cli.App
	began, shown time.Time
	width        int // of the line that is on the terminal
}

const (
	quietly = 2 * time.Second        // a search says nothing for so long
	between = 500 * time.Millisecond // two lines
)

// show replaces the line on the terminal.
func (p *progress) show(locks, others int) {
	now := time.Now()
	if p.app.Settings().Quiet || !cli.Terminal(p.app.Err) || now.Sub(p.began) < quietly || now.Sub(p.shown) < between {
		return
	}
	p.shown = now
	line := fmt.Sprintf("docent: searching for %v: %s and %d other directories so far",
		now.Sub(p.began).Round(time.Second), show.Counted(locks, "lock"), others)
	fmt.Fprintf(p.app.Err, "\r%-*s", p.width, line)
	p.width = len(line)
}

// clear takes the line away, so that the output begins at the left.
func (p *progress) clear() {
	if p.width > 0 {
		fmt.Fprintf(p.app.Err, "\r%*s\r", p.width, "")
	}
}

// missing returns an error if there is no znode at the root of a search, which then found nothing. A path
// with a letter too many must not look like a directory whose locks are all free.
func missing(ctx context.Context, c *framework.Client, from string, s inspect.Snapshot) error {
	if len(s.Locks)+len(s.Unread) > 0 {
		return nil
	}
	_, ok, err := c.Exists(ctx, from)
	if err != nil || ok {
		return err
	}
	return &cli.ExitError{Code: cli.CodeNothing, Err: &framework.OpError{Op: "search below", Path: from, Err: framework.ErrNoNode}}
}

// readLock reads the lock at the path, within the time of a query.
func readLock(ctx context.Context, app *cli.App, c *framework.Client, path string) (inspect.Snapshot, inspect.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, app.Settings().Timeout)
	defer cancel()
	s := inspect.Snapshot{At: time.Now(), Complete: true}
	l, err := inspect.Read(ctx, c, path)
	if err == nil && l.Kind != "" {
		s.Locks = []inspect.Lock{l}
	}
	return s, l, err
}

// A scanFlags is the flags of a command that looks for locks.
type scanFlags struct{ depth, max, rate int }

func (f *scanFlags) define(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.depth, "depth", 8, "look so many directories below ROOT")
	cmd.Flags().IntVar(&f.max, "max", 10_000, "stop after so many locks, or as many other directories")
	cmd.Flags().IntVar(&f.rate, "rate", 1_000, "list and read so many znodes a second, 0 for as many as possible")
}

// check returns what is wrong with the flags, or with ROOT.
func (f *scanFlags) check(args []string) error {
	faults := []error{framework.ValidatePath(cli.Root(args))}
	if f.depth < 1 {
		faults = append(faults, fmt.Errorf("--depth %d: must be at least 1", f.depth))
	}
	if f.max < 1 {
		faults = append(faults, fmt.Errorf("--max %d: must be at least 1", f.max))
	}
	if f.rate < 0 {
		faults = append(faults, fmt.Errorf("--rate %d: must not be negative", f.rate))
	}
	if err := errors.Join(faults...); err != nil {
		return cli.Usage(err)
	}
	return nil
}

func (f *scanFlags) limits(holdersOnly bool) inspect.Limits {
	return inspect.Limits{Depth: f.depth, Max: f.max, Rate: f.rate, HoldersOnly: holdersOnly}
}

// isJSON reports whether the output is JSON.
func isJSON(app *cli.App) bool {
	format := app.Settings().Output
	return format == cli.JSON || format == cli.JSONLines
}

// writeSnapshot writes the snapshot as JSON: see writeForm.
func writeSnapshot(app *cli.App, s inspect.Snapshot, data bool) error {
	return writeForm(app, form.Of(s, app.Settings().Connect, data))
}

// writeForm writes one document, or a line for each server, lock and finding.
func writeForm(app *cli.App, f form.Snapshot) error {
	if app.Settings().Output == cli.JSON {
		return app.WriteJSON(f)
	}
	return errors.Join(writeLines(app, f.Servers), writeLines(app, f.Locks), writeLines(app, f.Findings))
}

func writeLines[T any](app *cli.App, list []T) error {
	for _, one := range list {
		if err := app.WriteJSON(one); err != nil {
			return err
		}
	}
	return nil
}

// warn says by how much the clocks differ.
func warn(app *cli.App, s inspect.Snapshot) {
	latest := time.Duration(0)
	for _, l := range s.Locks {
		for _, c := range l.Contenders {
			if c.Read() {
				latest = max(latest, c.Created.Sub(s.At))
			}
		}
	}
	if latest > 2*time.Second {
		app.Say("clocks differ by %v: the servers' is ahead", latest.Round(time.Second))
	}
}

// unreadLine says how many paths could not be read, and why.
func unreadLine(s inspect.Snapshot) string {
	var causes []string
	seen := make(map[string]bool)
	for _, u := range s.Unread {
		if cause := zktel.ErrorType(u.Err); !seen[cause] {
			seen[cause] = true
			causes = append(causes, cause)
		}
	}
	return show.Counted(len(s.Unread), "path") + " could not be read (" + strings.Join(causes, ", ") + ")"
}
