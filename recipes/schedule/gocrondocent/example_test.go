package gocrondocent_test

import (
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/schedule/gocrondocent"
	"github.com/docent-go/docent/testing/zkserver"
)

// Two hosts have the same job.
func ExampleNewLocker() {
	server, err := zkserver.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	for _, host := range []string{"a", "b"} {
		client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
		if err != nil {
			log.Fatal(err)
		}
		locker, err := gocrondocent.NewLocker(client, "/jobs", time.Minute)
		if err != nil {
			log.Fatal(err)
		}
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			log.Fatal(err)
		}
		over := make(chan struct{})
		_, err = scheduler.NewJob(
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(func() { fmt.Println(host, "makes the report"); close(over) }),
			gocron.WithName("report"),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { fmt.Println(host, "does not"); close(over) })),
		)
		if err != nil {
			log.Fatal(err)
		}
		scheduler.Start()
		<-over
		if err := scheduler.Shutdown(); err != nil {
			log.Fatal(err)
		}
		if err := client.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// a makes the report
	// b does not
}
