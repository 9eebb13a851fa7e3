package must_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
)

// A fake is a test that records its failure and continues.
type fake struct {
	testing.TB

	failed []any
}

func (*fake) Helper()             {}
func (f *fake) Fatal(args ...any) { f.failed = args }

// Fatalf ends the goroutine by a panic with what failed.
func (*fake) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

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

func TestReceive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ch := make(chan int)
		go func() { <-time.After(29 * time.Second); ch <- 7; close(ch) }()
		if got := must.Receive(t, ch, "a number"); got != 7 {
			t.Errorf("received %d, want 7", got)
		}
		if got := must.Receive(t, ch, "the end"); got != 0 {
			t.Errorf("received %d of a closed channel, want 0", got)
		}
		defer func() {
			if got, want := recover(), "not within 30s: a number"; got != want {
				t.Errorf("failed with %v, want %q", got, want)
			}
		}()
		must.Receive(new(fake), make(chan int), "a number")
	})
}
