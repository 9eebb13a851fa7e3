package must_test

import (
	"errors"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// A fake is a test that records its failure and continues.
type fake struct {
	testing.TB

	failed []any
}

func (*fake) Helper()             {}
func (f *fake) Fatal(args ...any) { f.failed = args }

func TestMust(t *testing.T) {
	t.Parallel()
	err := errors.New("broken")
	calls := map[string]func(testing.TB, error){
		"OK":   must.OK,
		"Get":  func(t testing.TB, err error) { _ = must.Get(1, err)(t) },
		"Get2": func(t testing.TB, err error) { _, _ = must.Get2(1, "a", err)(t) },
	}
	for name, call := range calls {
		var good, bad fake
		call(&good, nil)
		call(&bad, err)
		if len(good.failed) != 0 || len(bad.failed) != 1 || bad.failed[0] != any(err) {
			t.Errorf("%s: without an error %v, with one %v; want none and the error", name, good.failed, bad.failed)
		}
	}
	if v, w := must.Get2(1, "a", nil)(t); v != 1 || w != "a" || must.Get(2, nil)(t) != 2 {
		t.Error("the values are others than were given")
	}
}
