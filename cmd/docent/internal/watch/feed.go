package watch

import (
	"context"
	"sync"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
)

// A Source has the views of one directory. An [inspect.Live] is one.
type Source = change.Source

// An update is a view of the directory at root.
type update struct {
	root string
	view inspect.View
}

// feed calls fn with the views of all sources, one after another, until ctx ends or fn returns an error.
func feed(ctx context.Context, sources map[string]Source, fn func(update) error) error {
	ctx, cancel := context.WithCancel(ctx)
	updates := make(chan update)
	var wg sync.WaitGroup // the goroutines of the sources
	defer wg.Wait()
	defer cancel()
	for root, source := range sources {
		wg.Go(func() {
			for view := range source.Views(ctx) {
				select {
				case updates <- update{root, view}:
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
