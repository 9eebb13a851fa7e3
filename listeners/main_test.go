package listeners_test

import (
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/docent-go/docent/listeners"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A record is what a listener has seen.
type record[E comparable] struct {
	mu   sync.Mutex
	seen []E
}

func (r *record[E]) add(e E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, e)
}

func (r *record[E]) events() []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

func (r *record[E]) check(t *testing.T, name string, want ...E) {
	t.Helper()
	if got := r.events(); !slices.Equal(got, want) {
		t.Errorf("%s saw %v, want %v", name, got, want)
	}
}

// noPanic is a hook for listeners that are not to panic.
func noPanic(t *testing.T) func(*listeners.PanicError) {
	t.Helper()
	return func(p *listeners.PanicError) { t.Errorf("%v\n%s", p, p.Stack) }
}

// panicOf returns what fn panics with.
func panicOf(fn func()) (v any) {
	defer func() { v = recover() }()
	fn()
	return nil
}
