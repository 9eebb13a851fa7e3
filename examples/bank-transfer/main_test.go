package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

func TestNoMoneyIsLostOrMade(t *testing.T) {
	t.Parallel()
	out := harness.RunInBubble(t, run)
	sum, moved := 0, false
	for _, line := range regexp.MustCompile(`(?m)^(?:anna|bert|carla) +(\d+)$`).FindAllStringSubmatch(out, -1) {
		balance, err := strconv.Atoi(line[1])
		if err != nil {
			t.Fatal(err)
		}
		sum += balance
		moved = moved || balance != 100
	}
	if sum != 300 || !moved {
		t.Errorf("accounts of %d, some changed: %v; want 300 in all, and changes:\n%s", sum, moved, out)
	}
}
