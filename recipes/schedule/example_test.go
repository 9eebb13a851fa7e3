package schedule_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
)

// Two hosts are to run the job at 03:00. The clock of one is behind, and the job is short.
func ExampleSchedule_Run() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx, threeOClock := context.Background(), time.Date(2026, time.March, 1, 3, 0, 0, 0, time.UTC)
	for _, host := range []string{"a", "b"} {
		nightly, err := schedule.New(client, "/jobs/nightly")
		if err != nil {
			log.Fatal(err)
		}
		result, err := nightly.Run(ctx, threeOClock, func(context.Context, *lease.Lease) error {
			fmt.Println(host, "makes the report")
			return nil
		})
		fmt.Println(host, result.Outcome, err)
	}
	// Output:
	// a makes the report
	// a Ran <nil>
	// b DoneElsewhere <nil>
}

// The last runs are kept.
func ExampleSchedule_History() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	nightly, err := schedule.New(client, "/jobs/nightly", schedule.WithHistory(2))
	if err != nil {
		log.Fatal(err)
	}
	ctx, threeOClock := context.Background(), time.Date(2026, time.March, 1, 3, 0, 0, 0, time.UTC)
	for day := range 3 {
		_, err := nightly.Run(ctx, threeOClock.AddDate(0, 0, day), func(context.Context, *lease.Lease) error {
			if day == 2 {
				return fmt.Errorf("no paper")
			}
			return nil
		})
		fmt.Println(err)
	}
	runs, err := nightly.History(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, run := range runs {
		fmt.Println(run.Slot, run.State)
	}
	// Output:
	// <nil>
	// <nil>
	// no paper
	// 2026-03-02 03:00:00 +0000 UTC done
	// 2026-03-03 03:00:00 +0000 UTC failed
}
