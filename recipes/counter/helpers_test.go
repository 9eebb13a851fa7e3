package counter_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/model"
)

func newCounter(t testing.TB, c *framework.Client, path string, opts ...counter.Option) *counter.Counter {
	t.Helper()
	return must.Get(counter.New(c, path, opts...))(t)
}

func newValue(t testing.TB, c *framework.Client, path string) *counter.Value[[]string] {
	t.Helper()
	return must.Get(counter.NewValue(c, path, model.JSON[[]string]()))(t)
}

// mustAdd adds or fails the test.
func mustAdd(t testing.TB, n *counter.Counter, delta int64) int64 {
	t.Helper()
	return must.Get(n.Add(t.Context(), delta))(t)
}

// mustBe fails the test unless the number is want.
func mustBe(t testing.TB, n *counter.Counter, want int64) {
	t.Helper()
	if v, err := n.Get(t.Context()); err != nil || v != want {
		t.Errorf("number %d, %v; want %d", v, err, want)
	}
}
