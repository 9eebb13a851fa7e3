package check_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/check"
)

// A fake is a test that records its failures.
type fake struct {
	testing.TB

	failed []string
}

func (*fake) Helper()                     {}
func (f *fake) Error(args ...any)         { f.failed = append(f.failed, fmt.Sprint(args...)) }
func (f *fake) Errorf(s string, a ...any) { f.failed = append(f.failed, fmt.Sprintf(s, a...)) }

func TestCheck(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("broken: %w", io.EOF)
	for name, tc := range map[string]struct {
		call func(testing.TB)
		want []string // none: the check passes
	}{
		"That holds":     {func(t testing.TB) { check.That(t, true, "no %d", 1) }, nil},
		"That fails":     {func(t testing.TB) { check.That(t, false, "no %d", 1) }, []string{"no 1"}},
		"no error":       {func(t testing.TB) { check.OK(t, nil) }, nil},
		"an error":       {func(t testing.TB) { check.OK(t, io.EOF) }, []string{"EOF"}},
		"Is wraps":       {func(t testing.TB) { check.Is(t, wrapped, io.EOF, "read") }, nil},
		"Is nil":         {func(t testing.TB) { check.Is(t, nil, nil, "read") }, nil},
		"Is, want none":  {func(t testing.TB) { check.Is(t, io.EOF, nil, "read %d", 1) }, []string{"read 1: got error EOF, want <nil>"}},
		"Is, got none":   {func(t testing.TB) { check.Is(t, nil, io.EOF, "read") }, []string{"read: got error <nil>, want EOF"}},
		"Is another":     {func(t testing.TB) { check.Is(t, errors.New("x"), io.EOF, "read") }, []string{"read: got error x, want EOF"}},
		"Says":           {func(t testing.TB) { check.Says(t, wrapped, "broken", "read") }, nil},
		"Says, got none": {func(t testing.TB) { check.Says(t, nil, "", "read") }, []string{`read: got error <nil>, want it to say ""`}},
		"Says something": {func(t testing.TB) { check.Says(t, io.EOF, "x", "read %d", 1) }, []string{`read 1: got error EOF, want it to say "x"`}},
		"Equal":          {func(t testing.TB) { check.Equal(t, 1, 1, "dials") }, nil},
		"Equal, another": {func(t testing.TB) { check.Equal(t, 1, 2, "dials %d", 3) }, []string{"dials 3: got 1, want 2"}},
		"Equal strings":  {func(t testing.TB) { check.Equal(t, "", "a", "data") }, []string{`data: got "", want "a"`}},
		"Slices":         {func(t testing.TB) { check.Slices(t, nil, []int{}, "list") }, nil},
		"Slices, order":  {func(t testing.TB) { check.Slices(t, []int{1, 2}, []int{2, 1}, "list") }, []string{"list: got [1 2], want [2 1]"}},
		"AtMost":         {func(t testing.TB) { check.AtMost(t, 2, 2, "n") }, nil},
		"AtMost, more":   {func(t testing.TB) { check.AtMost(t, 3, 2, "n") }, []string{"n: got 3, want at most 2"}},
		"AtLeast":        {func(t testing.TB) { check.AtLeast(t, 2, 2, "n") }, nil},
		"AtLeast, less":  {func(t testing.TB) { check.AtLeast(t, 1, 2, "n") }, []string{"n: got 1, want at least 2"}},
	} {
		var f fake
		tc.call(&f)
		if !slices.Equal(f.failed, tc.want) {
			t.Errorf("%s: failed with %q, want %q", name, f.failed, tc.want)
		}
	}
}
