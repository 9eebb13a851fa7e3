package main

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

func TestAbsence(t *testing.T) {
	t.Parallel()
	out := harness.RunInBubble(t, run)
	rest := out
	for _, want := range []string{
		"Connected  the first session", "the lock is ours",
		"Suspended", "the lock: still ours",
		"Connected  the same session",
		"Suspended", "the lock: still ours",
		"Lost", "the lock: lease: lost /examples/states/lock: session ended",
		"Connected  a new session", "the lock is ours",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q at its place in:\n%s", want, out)
		}
		rest = after
	}
	if got := strings.Count(out, "the lock is ours"); got != 2 {
		t.Errorf("had the lock %d times, want 2:\n%s", got, out)
	}
}
