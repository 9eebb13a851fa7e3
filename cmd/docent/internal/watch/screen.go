package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// NewModel returns the screen of the directories that the followers follow.
func NewModel(followers map[string]*Follower, now time.Time, color bool) *Model {
	return &Model{
		State:     State{Views: map[string]inspect.View{}, Now: now, Color: color},
		followers: followers,
	}
}

// onScreen reports whether the table can be shown: input and output are a terminal that can move its cursor.
func (w *watcher) onScreen() bool {
	return w.app.Settings().Output != cli.JSONLines && w.app.Getenv("TERM") != "dumb" &&
		cli.Terminal(w.app.In) && cli.Terminal(w.app.Out)
}

// screen shows the table until the user quits or ctx ends. The terminal is as before when it returns.
func (w *watcher) screen(ctx context.Context, sources map[string]Source, followers map[string]*Follower) error {
	model := NewModel(followers, time.Now(), w.app.Color())
	model.Run = func(args ...string) tea.Cmd { return w.docent(ctx, args...) }
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(w.app.In), tea.WithOutput(w.app.Out),
		tea.WithEnvironment(w.app.Env), tea.WithoutSignalHandler())
	feeding, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup // the goroutine of the feed
	wg.Go(func() {
		_ = feed(feeding, sources, func(u update) error { program.Send(u); return nil }) // no error is returned
	})
	_, err := program.Run()
	cancel()
	wg.Wait()
	switch {
	case model.Interrupted:
		return &cli.ExitError{Code: cli.CodeInterrupted}
	case errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil:
		err = nil // run reports that ctx has ended
	}
	return errors.Join(err, model.Err)
}
