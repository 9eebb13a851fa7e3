// Package watch is the command that shows how locks change: a table on a terminal, else one event a line.
package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/cmd/docent/internal/trace"
	"github.com/docent-go/docent/framework"
)

// New returns the command "watch".
func New(app *cli.App) *cobra.Command {
	w := &watcher{app: app}
	cmd := &cobra.Command{
		Use:     "watch [ROOT|PATH]…",
		GroupID: cli.ToShow,
		Short:   "Show how the locks below ROOT change",
		Long: "watch shows the locks at ROOT and below it. On a terminal it shows a table with the longest waits on\n" +
			"top: the key ? has its keys. Otherwise, or with -o jsonl, it writes one event a line: granted, queued,\n" +
			"released, gone (before its turn), revoked, stale or live. It lists all znodes below ROOT, so choose a\n" +
			"directory that has only locks. ROOT is / by default. watch ends at Ctrl-C.",
		RunE: func(cmd *cobra.Command, args []string) error {
			roots, err := rootsOf(args)
			if err == nil {
				err = errors.Join(w.check(), w.follow.Check())
			}
			if err != nil {
				return cli.Usage(err)
			}
			return w.run(cmd.Context(), roots)
		},
	}
	cmd.Flags().StringVar(&w.trace, "trace", "", "at the end, write the holds to this `file`, in the format of Perfetto")
	w.follow.Define(cmd.Flags())
	return cmd
}

// rootsOf returns the directories to watch. None may be below another one.
func rootsOf(args []string) ([]string, error) {
	if len(args) == 0 {
		return []string{"/"}, nil
	}
	for i, root := range args {
		if err := framework.ValidatePath(root); err != nil {
			return nil, err
		}
		for j, other := range args {
			if i != j && strings.HasPrefix(root+"/", strings.TrimSuffix(other, "/")+"/") {
				return nil, fmt.Errorf("%s is at %s or below it: name one of them", root, other)
			}
		}
	}
	return args, nil
}

// A watcher is one run of watch.
type watcher struct {
	app    *cli.App
	trace  string
	follow cli.FollowFlags
}

func (w *watcher) check() error {
	format := w.app.Settings().Output
	if !slices.Contains([]cli.Format{cli.Text, cli.Wide, cli.JSONLines}, format) {
		return fmt.Errorf("-o %s: watch writes text or jsonl", format)
	}
	return nil
}

// run watches until ctx ends, the reader of the output has gone, or the user quits.
func (w *watcher) run(ctx context.Context, roots []string) (end error) {
	signal.Ignore(syscall.SIGPIPE) // a write fails instead, so the session and the trace are ended properly
	var followers []*Follower
	if w.trace != "" {
		file, err := os.Create(w.trace)
		if err != nil {
			return cli.Usage(err)
		}
		defer func() { end = errors.Join(end, writeTrace(file, followers)) }() // even if there is no connection
	}
	c, err := w.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { end = errors.Join(end, c.Close()) }()
	for _, root := range roots {
		live, err := inspect.Follow(c, root, w.follow.Limits())
		if err != nil {
			return err
		}
		defer func() { _ = live.Close() }() // it fails only if it is closed already
		followers = append(followers, NewFollower(root, live))
	}
	write := w.lines
	if w.onScreen() {
		write = w.screen
	}
	err = write(ctx, followers)
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	if err == nil && ctx.Err() != nil {
		return &cli.ExitError{Code: cli.CodeInterrupted}
	}
	return err
}

// lines writes the events, one a line.
func (w *watcher) lines(ctx context.Context, followers []*Follower) error {
	said := make(map[string]bool)
	return feed(ctx, followers, func(u update) error {
		if err := unreadable(u.view); err != nil {
			return err
		}
		if u.view.LeftOut > 0 && u.view.State == inspect.Current && !said[u.root] {
			said[u.root] = true
			w.app.Say("%s: %s: name a directory that has only locks, or see --max", cli.Safe(u.root), leftOut(u.view.LeftOut))
		}
		for _, e := range u.events {
			if err := w.write(e); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *watcher) write(e change.Event) error {
	if w.app.Settings().Output == cli.JSONLines {
		return w.app.WriteJSON(e.Form())
	}
	_, err := fmt.Fprintln(w.app.Out, Line(e))
	return err
}

// leftOut says how many znodes --max leaves out.
func leftOut(n int) string { return show.Counted(n, "znode") + " left out, with all below" }

// unreadable returns why the directory can't be watched: the client may not read it.
func unreadable(view inspect.View) error {
	if view.State != inspect.Current && errors.Is(view.Cause, framework.ErrNoAuth) {
		return view.Cause
	}
	return nil
}

// writeTrace writes the holds and closes the file. Those that have not ended end now.
func writeTrace(file *os.File, followers []*Follower) error {
	var holds []trace.Hold
	now := time.Now()
	for _, f := range followers {
		holds = append(holds, f.Holds(now)...)
	}
	return errors.Join(trace.Write(file, holds), file.Close())
}

// An update is a view of the directory at root, and what has changed since the view before.
type update struct {
	root   string
	view   inspect.View
	events []change.Event
}

// feed calls fn with the updates of all directories, one after another, until ctx ends or fn returns an error.
func feed(ctx context.Context, followers []*Follower, fn func(update) error) error {
	ctx, cancel := context.WithCancel(ctx)
	updates := make(chan update)
	var wg sync.WaitGroup // the goroutines of the followers
	defer wg.Wait()
	defer cancel()
	for _, f := range followers {
		wg.Go(func() {
			for view := range f.source.Views(ctx) {
				select {
				case updates <- f.update(view):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for {
		select {
		case u := <-updates:
			if err := fn(u); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
