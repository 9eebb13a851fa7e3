package crondocent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/robfig/cron/v3"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/schedule/crondocent"
	"github.com/docent-go/docent/testing/zkserver"
)

// One of the hosts of a fleet.
func Example() {
	server, err := zkserver.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, cancel := context.WithCancel(context.Background())
	fleet, err := crondocent.New(cron.New(cron.WithSeconds()), func(result schedule.Result, err error) {
		fmt.Println(result.Outcome, err)
		cancel()
	})
	if err != nil {
		log.Fatal(err)
	}
	report, err := schedule.New(client, "/jobs/report")
	if err != nil {
		log.Fatal(err)
	}
	_, err = fleet.Add("* * * * * *", report, func(context.Context, *lease.Lease) error {
		fmt.Println("the report is made")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fleet.Run(ctx)
	// Output:
	// the report is made
	// Ran <nil>
}
