// Package must fails a test at the first error. It serves docent's own tests, in which most calls are
// preparation and a check of each error would hide what the test is about.
package must

import (
	"testing"

	"github.com/docent-go/docent/internal/check"
)

// OK fails the test if err isn't nil. It must be called on the test's goroutine.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns v, or fails the test if err isn't nil:
//
//	data := must.Get(os.ReadFile(name))(t)
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Get2 is Get for two values.
func Get2[T, U any](v T, w U, err error) func(testing.TB) (T, U) {
	return func(t testing.TB) (T, U) {
		t.Helper()
		OK(t, err)
		return v, w
	}
}

// First is Get for the first of two values.
func First[T, U any](v T, _ U, err error) func(testing.TB) T {
	return Get(v, err)
}

// Second is Get for the second of two values.
func Second[T, U any](_ T, w U, err error) func(testing.TB) U {
	return Get(w, err)
}

// Err returns the error of a call, which is its last result:
//
//	check.Is(t, must.Err(m.Lock(ctx)), lock.ErrClosed, "Lock after Close")
func Err(results ...any) error {
	err, _ := results[len(results)-1].(error)
	return err
}

// That is check.That, and ends the test.
func That(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	check.That(fatal{t}, ok, format, args...)
}

// Is is check.Is, and ends the test.
func Is(t testing.TB, err, want error, format string, args ...any) {
	t.Helper()
	check.Is(fatal{t}, err, want, format, args...)
}

// Equal is check.Equal, and ends the test.
func Equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	check.Equal(fatal{t}, got, want, format, args...)
}

// A fatal is a test that ends at its first failure.
type fatal struct{ testing.TB }

func (f fatal) Errorf(format string, args ...any) {
	f.Helper()
	f.Fatalf(format, args...)
}
