package main

import (
	"testing"

	"github.com/docent-go/docent/examples/internal/example"
)

func TestEveryOrderHasANumberOfItsOwn(t *testing.T) {
	t.Parallel()
	want := "75 orders have 75 different numbers\n"
	if out := example.RunInBubble(t, run); out != want {
		t.Errorf("printed:\n%s\nwant:\n%s", out, want)
	}
}
