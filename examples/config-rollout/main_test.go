package main

import (
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

// Each request fails that sees settings of two versions, and run with it.
func TestNoRequestSeesHalfARollout(t *testing.T) {
	t.Parallel()
	want := `rollout of v2: no request runs
rollout of v2: checked v2 while others read
service 1: some requests by v1: true, then 5 by v2
service 2: some requests by v1: true, then 5 by v2
service 3: some requests by v1: true, then 5 by v2
`
	if got := harness.RunInBubble(t, run); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}
