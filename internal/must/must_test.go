package must_test

import (
	"errors"
	"fmt"
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

func (f *fake) Fatalf(format string, args ...any) { f.failed = []any{fmt.Sprintf(format, args...)} }

func TestMust(t *testing.T) {
	t.Parallel()
	err := errors.New("broken")
	calls := map[string]func(testing.TB, error){
		"OK":   must.OK,
		"Get":  func(t testing.TB, err error) { _ = must.Get(1, err)(t) },
		"Get2": func(t testing.TB, err error) { _, _ = must.Get2(1, "a", err)(t) },

		"First":  func(t testing.TB, err error) { _ = must.First(1, "a", err)(t) },
		"Second": func(t testing.TB, err error) { _ = must.Second(1, "a", err)(t) },
	}
	for name, call := range calls {
		var good, bad fake
		call(&good, nil)
		call(&bad, err)
		if len(good.failed) != 0 || len(bad.failed) != 1 || bad.failed[0] != err {
			t.Errorf("%s: without an error %v, with one %v; want none and the error", name, good.failed, bad.failed)
		}
	}
	if v, w := must.Get2(1, "a", nil)(t); v != 1 || w != "a" || must.Get(2, nil)(t) != 2 {
		t.Error("the values are others than were given")
	}
	if v, w := must.First(1, "a", nil)(t), must.Second(1, "a", nil)(t); v != 1 || w != "a" {
		t.Errorf("First %v, Second %v; want 1 and a", v, w)
	}
	if must.Err(1, err) != err || must.Err(1, error(nil)) != nil || must.Err(err) != err {
		t.Error("Err returns another error than the last result")
	}
}

func TestMustEnds(t *testing.T) {
	t.Parallel()
	err := errors.New("broken")
	for want, call := range map[string]func(testing.TB, bool){
		"no 1": func(t testing.TB, ok bool) { must.That(t, ok, "no %d", 1) },
		"read 1: got error broken, want <nil>": func(t testing.TB, ok bool) {
			got := err
			if ok {
				got = nil
			}
			must.Is(t, got, nil, "read %d", 1)
		},
		"same 1: got false, want true": func(t testing.TB, ok bool) { must.Equal(t, ok, true, "same %d", 1) },
	} {
		var good, bad fake
		call(&good, true)
		call(&bad, false)
		if len(good.failed) != 0 || len(bad.failed) != 1 || bad.failed[0] != want {
			t.Errorf("it failed with %v and %v, want nothing and %q", good.failed, bad.failed, want)
		}
	}
}
