package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/examples/internal/example"
	"github.com/docent-go/docent/framework"
)

func TestSuccessionFollowsTheLine(t *testing.T) {
	t.Parallel()
	want := `anna leads; the ensemble says anna
anna resigns: <nil>
bert leads; the ensemble says bert
bert is gone: true
carla leads; the ensemble says carla
`
	if got := example.RunInBubble(t, run); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}

// A leader whose session ends has stopped before another one begins, and is a
// candidate again.
func TestADeposedLeaderStopsAndStandsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zk, err := example.Embedded()
		if err != nil {
			t.Fatal(err)
		}
		defer zk.Embedded.Close()
		client, err := framework.NewClient(zk.Connect, zk.Dialer)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		e, err := newElection(client, "/election", "anna", func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		var terms []int64
		err = e.campaign(t.Context(), func(ctx context.Context, term int64) error {
			if terms = append(terms, term); len(terms) == 3 {
				return nil
			}
			if err := zk.Embedded.Expire(client.Session().ID); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if err != nil {
			t.Error(err)
		}
		if len(terms) != 3 || !slices.IsSorted(terms) || terms[0] == terms[1] || terms[1] == terms[2] {
			t.Errorf("terms %v, want three that grow", terms)
		}
	})
}
