// Package must fails a test at the first error. It serves docent's own tests, in which most calls are
// preparation and a check of each error would hide what the test is about.
package must

import "testing"

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
