package main

import (
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

func TestTheServiceFollowsItsConfiguration(t *testing.T) {
	t.Parallel()
	want := `the service starts with limit 10
limit is 10
limit was 10 and is 20
mode is fast
mode is gone
`
	if got := harness.RunInBubble(t, run); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}
