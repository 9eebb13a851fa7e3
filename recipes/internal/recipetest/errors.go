package recipetest

import (
	"errors"
	"strings"
	"testing"
)

// Err returns the error of a call whose result doesn't matter.
func Err[T any](_ T, err error) error { return err }

// Fails fails the test unless the error of what matches all of want.
func Fails(t testing.TB, what string, err error, want ...error) {
	t.Helper()
	for _, target := range want {
		if !errors.Is(err, target) {
			t.Errorf("%s: %v, want %v", what, err, target)
		}
	}
}

// Says fails the test unless there is an error that contains each of the texts.
func Says(t testing.TB, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want an error that says %q", err, text)
		}
	}
}
