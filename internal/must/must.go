// Package must fails a test at the first error. It serves docent's own tests, in which most calls are
// preparation and a check of each error would hide what the test is about.
package must

import (
	"testing"
	"time"
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

// generous is how long Receive waits, on a machine as slow as it may be.
const generous = 30 * time.Second

// Receive returns the next value of ch, or the zero value if ch is closed. It fails the test if there
// is none within 30 seconds. what says what the test waits for.
func Receive[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(generous):
		t.Fatalf("not within %v: %s", generous, what)
		panic("unreachable")
	}
}
