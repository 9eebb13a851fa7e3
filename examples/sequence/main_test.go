package main

import (
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

func TestEveryOrderHasANumberOfItsOwn(t *testing.T) {
	t.Parallel()
	want := "75 orders have 75 different numbers\n"
	if out := harness.RunInBubble(t, run); out != want {
		t.Errorf("printed:\n%s\nwant:\n%s", out, want)
	}
}
