package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkserver"
)

// At most three downloads run at a time, on all hosts together.
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

	downloads, err := semaphore.New(client, "/limits/downloads", 3)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	two, err := downloads.Acquire(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	_, err = downloads.TryAcquire(ctx, 2)
	fmt.Println("two more:", errors.Is(err, lease.ErrHeld))
	_, err = downloads.Acquire(ctx, 4)
	fmt.Println("four of three:", errors.Is(err, semaphore.ErrTooMany))
	fmt.Println("released:", two.Release(ctx))
	// Output:
	// two more: true
	// four of three: true
	// released: <nil>
}
