// Package check compares what a test got with what it wants, in one line each. A test that failed a
// check goes on; package must has checks that end it. Both serve docent's own tests.
//
// Each function takes a format and its values, as in fmt.Sprintf: they name what was compared. The
// values are computed whether or not the check fails, so they have no effect and cannot panic.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// That fails the test with the message if ok is false.
func That(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// OK fails the test if err isn't nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Is fails the test unless errors.Is(err, want). With nil as want it fails at every error.
func Is(t testing.TB, err, want error, format string, args ...any) {
	t.Helper()
	That(t, errors.Is(err, want), "%s: got error %v, want %v", fmt.Sprintf(format, args...), err, want)
}

// Says fails the test unless err is an error whose text contains the given one.
func Says(t testing.TB, err error, text, format string, args ...any) {
	t.Helper()
	That(t, err != nil && strings.Contains(err.Error(), text),
		"%s: got error %v, want it to say %q", fmt.Sprintf(format, args...), err, text)
}

// Equal fails the test unless got equals want.
func Equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	That(t, got == want, "%s: got %s, want %s", fmt.Sprintf(format, args...), show(got), show(want))
}

// Slices fails the test unless got and want have equal elements in the same order.
func Slices[S ~[]E, E comparable](t testing.TB, got, want S, format string, args ...any) {
	t.Helper()
	That(t, slices.Equal(got, want), "%s: got %v, want %v", fmt.Sprintf(format, args...), got, want)
}

// AtMost fails the test if got is greater than bound.
func AtMost[T cmp.Ordered](t testing.TB, got, bound T, format string, args ...any) {
	t.Helper()
	That(t, got <= bound, "%s: got %v, want at most %v", fmt.Sprintf(format, args...), got, bound)
}

// AtLeast fails the test if got is less than bound.
func AtLeast[T cmp.Ordered](t testing.TB, got, bound T, format string, args ...any) {
	t.Helper()
	That(t, got >= bound, "%s: got %v, want at least %v", fmt.Sprintf(format, args...), got, bound)
}

// show quotes a string, so that an empty one and blanks are seen.
func show(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%+v", v)
}
