package watch

import (
	"errors"
	"os"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/trace"
)

// openTrace creates the file of --trace. The function that it returns writes and closes it.
func (w *watcher) openTrace() (func(map[string]*Follower) error, error) {
	if w.trace == "" {
		return func(map[string]*Follower) error { return nil }, nil
	}
	file, err := os.Create(w.trace)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return func(followers map[string]*Follower) error {
		var holds []trace.Hold
		now := time.Now()
		for _, f := range followers {
			holds = append(holds, f.Holds(now)...)
		}
		return errors.Join(trace.Write(file, holds), file.Close())
	}, nil
}
