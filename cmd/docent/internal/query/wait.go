package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/framework"
)

// A wait is one run of wait.
type wait struct {
	app   *cli.App
	began time.Time
	held  string // the lock that it waits for, and its holder
	said  string // the last text of held that it has written
}

const (
	// lookAgain is how long wait relies on a watch: servers drop events of znodes that the session may not
	// read.
	lookAgain = 10 * time.Second
	talkAfter = time.Second // of waiting
)

// newWait returns the command wait.
func newWait(app *cli.App) *cobra.Command {
	w := &wait{app: app}
	return &cobra.Command{
		Use:     "wait PATH…",
		Short:   "Wait until locks are free",
		GroupID: cli.ToShow,
		Long: "wait returns when no contender holds the lock of PATH, or of several paths together. A path that\n" +
			"does not exist is free. With --timeout on the command line, wait exits with 124 after that time. It\n" +
			"takes no lock: another client may be granted one at once. docent exec runs a command under a lock.",
		Args: cli.Args(1, math.MaxInt),
		RunE: func(cmd *cobra.Command, paths []string) error {
			var faults []error
			for _, path := range paths {
				faults = append(faults, framework.ValidatePath(path))
			}
			if err := errors.Join(faults...); err != nil {
				return cli.Usage(err)
			}
			return connected(cmd.Context(), app, func(c *framework.Client) error {
				if err := w.refuseOuter(cmd.Context(), c, paths); err != nil {
					return err
				}
				return w.run(cmd.Context(), c, paths)
			})
		},
	}
}

// refuseOuter returns an error if an outer docent exec holds one of the locks, and waits for this command.
func (w *wait) refuseOuter(ctx context.Context, c *framework.Client, paths []string) error {
	for _, path := range paths {
		held, err := w.app.OuterHold(ctx, c, path, false)
		if err != nil {
			return err
		}
		if held {
			return cli.Usage(fmt.Errorf("%s: an outer docent exec holds this lock and waits for this command", c.AbsolutePath(path)))
		}
	}
	return nil
}

func (w *wait) run(ctx context.Context, c *framework.Client, paths []string) error {
	within, cancel := context.WithCancel(ctx)
	if w.app.Given("timeout") {
		within, cancel = context.WithTimeout(ctx, w.app.Settings().Timeout)
	}
	defer cancel()
	w.began = time.Now()
	err := w.awaitAll(within, c, paths)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &cli.ExitError{Code: cli.CodeInterrupted}
	case within.Err() != nil:
		return &cli.ExitError{Code: cli.CodeTimeout, Err: fmt.Errorf("--timeout %v is over: %s: %w", w.app.Settings().Timeout, w.held, within.Err())}
	}
	return err
}

// awaitAll returns when it has seen all locks free, one after the other, without a wait in between.
func (w *wait) awaitAll(ctx context.Context, c *framework.Client, paths []string) error {
	for free := 0; free < len(paths); {
		l, err := w.read(ctx, c, paths[free])
		if err != nil {
			return err
		}
		i := slices.IndexFunc(l.Contenders, func(c inspect.Contender) bool { return c.State != inspect.Waits })
		if i < 0 {
			free++
			continue
		}
		free = 0
		w.held = fmt.Sprintf("%s is held by %s", cli.Safe(c.AbsolutePath(l.Path)), show.Who(l.Contenders[i]))
		if err := w.awaitEnd(ctx, c, l.Contenders[i].Znode); err != nil {
			return err
		}
	}
	return nil
}

// read reads the lock, however long there is no connection.
func (w *wait) read(ctx context.Context, c *framework.Client, path string) (inspect.Lock, error) {
	for {
		l, err := inspect.Read(ctx, c, path)
		if !isOutage(err) {
			return l, err
		}
		w.say(err.Error())
		if err := c.AwaitConnected(ctx); err != nil {
			return l, err
		}
		select {
		case <-time.After(time.Second): // the connection may break at each request
		case <-ctx.Done():
			return l, ctx.Err()
		}
	}
}

// isOutage reports whether the error is of the connection or the session, which may come again.
func isOutage(err error) bool {
	return errors.Is(err, framework.ErrNotConnected) || errors.Is(err, framework.ErrSessionEnded) || errors.Is(err, framework.ErrUnknownOutcome)
}

// awaitEnd returns when the znode may have ended.
func (w *wait) awaitEnd(ctx context.Context, c *framework.Client, znode string) error {
	var ended <-chan struct{} // nil if it cannot be watched
	switch watch, err := c.Watch(ctx, znode, framework.WatchExists); {
	case isOutage(err):
		return nil // the next read deals with it
	case errors.Is(err, framework.ErrNoAuth): // servers from 3.8.4 and 3.9.2 on; it exists
	case err != nil:
		return err
	default:
		defer watch.Close()
		if _, exists := watch.Stat(); !exists {
			return nil
		}
		ended = watch.Fired()
	}
	talk := max(0, talkAfter-time.Since(w.began))
	if w.app.Settings().Verbose {
		talk = 0
	}
	talking, again := time.NewTimer(talk), time.NewTimer(lookAgain)
	defer talking.Stop()
	defer again.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-again.C:
			return nil
		case <-talking.C:
			w.say(w.held)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// say writes the text, unless it was the last one.
func (w *wait) say(text string) {
	if text != w.said {
		w.app.Say("%s", cli.Safe(text))
		w.said = text
	}
}
