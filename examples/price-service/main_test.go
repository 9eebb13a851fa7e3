package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/docent-go/docent/examples/harness"
)

func TestTheLeaderSetsThePricesAndAllFollowThem(t *testing.T) {
	t.Parallel()
	want := `/prices/apple is 5
/prices/pear is 4
/prices/apple is 10
/prices/pear is 8
`
	got := harness.RunInBubble(t, func(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
		ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
		defer cancel()
		return run(ctx, zk, out)
	})
	if got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}
