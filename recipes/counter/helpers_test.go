package counter_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/model"
)

func newCounter(t testing.TB, c *framework.Client, path string, opts ...counter.Option) *counter.Counter {
	t.Helper()
	n, err := counter.New(c, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newValue(t testing.TB, c *framework.Client, path string) *counter.Value[[]string] {
	t.Helper()
	v, err := counter.NewValue(c, path, model.JSON[[]string]())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mustAdd adds or fails the test.
func mustAdd(t testing.TB, n *counter.Counter, delta int64) int64 {
	t.Helper()
	v, err := n.Add(t.Context(), delta)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mustBe fails the test unless the number is want.
func mustBe(t testing.TB, n *counter.Counter, want int64) {
	t.Helper()
	if v, err := n.Get(t.Context()); err != nil || v != want {
		t.Errorf("number %d, %v; want %d", v, err, want)
	}
}
