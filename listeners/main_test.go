package listeners_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/docent-go/docent/listeners"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// virtually runs the body in virtual time, with a Queued whose listeners are not to panic.
func virtually(t *testing.T, body func(t *testing.T, q *listeners.Queued[int])) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { body(t, listeners.NewQueued[int](noPanic(t))) })
}

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
