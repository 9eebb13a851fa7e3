package main

import (
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

func TestTheServiceFollowsItsConfiguration(t *testing.T) {
	t.Parallel()
	want := `web has 10
web has 20
web keeps 20: at byte 18 there is no JSON of a int, in member requests
mail has 5
web keeps 20: at byte 18 there is no JSON of a int, in member requests
web is gone
mail is gone
`
	if got := harness.RunInBubble(t, run); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}
