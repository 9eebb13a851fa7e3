package recipetest

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
)

// A Diary has what a sequence has shown, each element as a line.
type Diary struct {
	mu   sync.Mutex
	seen []string
}

// Follow ranges over the changes until the end of the test. An error of theirs fails the test.
func Follow[T any](t testing.TB, changes func(context.Context) iter.Seq2[T, error], line func(T) string) *Diary {
	t.Helper()
	d := new(Diary)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for v, err := range changes(ctx) {
			if err != nil {
				t.Errorf("changes: %v", err)
			}
			d.mu.Lock()
			d.seen = append(d.seen, line(v))
			d.mu.Unlock()
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return d
}

// String returns the lines, as in "a=1 | a=1 b=2".
func (d *Diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.seen, " | ")
}
