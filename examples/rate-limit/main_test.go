package main

import (
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

func TestAtMostThreePermitsAreInUse(t *testing.T) {
	t.Parallel()
	want := "12 exports are done, at most 3 permits in use at a time\n"
	if out := harness.RunInBubble(t, run); out != want {
		t.Errorf("printed:\n%s\nwant:\n%s", out, want)
	}
}
