package main

import (
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

func TestSuccessionFollowsTheLine(t *testing.T) {
	t.Parallel()
	want := `anna leads
anna resigns
bert leads
bert is gone: true
carla leads
`
	if got := harness.RunInBubble(t, run); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}
