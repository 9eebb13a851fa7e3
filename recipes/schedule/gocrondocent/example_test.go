package gocrondocent_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/schedule"
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

// A nightly job, whose night an outage does not cost.
func ExampleNewLocker_nightly() {
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
	makeReport := func() {}

	// Without WithWait, an outage of a minute at 03:00 costs the night.
	locker, err := gocrondocent.NewLocker(client, "/jobs", time.Minute, schedule.WithWait(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithLocation(time.UTC))
	if err != nil {
		log.Fatal(err)
	}
	job, err := scheduler.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(makeReport), gocron.WithName("report"),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, name string, err error) {
			if !errors.Is(err, gocrondocent.ErrNotHere) {
				log.Printf("%s is missed or lost: %v", name, err) // an alarm
			}
		})))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Name())
	if err := scheduler.Shutdown(); err != nil {
		log.Fatal(err)
	}
	// Output: report
}
