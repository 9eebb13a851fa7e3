package semaphore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/semaphore"
)

// At most three downloads run at a time, on all hosts together.
func Example() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
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

// The number of permits is data of a znode, which an operator can change while programs run.
func ExampleWithPermitsAt() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()

	ctx := context.Background()
	const number = "/limits/downloads-number"
	downloads, err := semaphore.New(client, "/limits/downloads", 1, semaphore.WithPermitsAt(number)) // 1 if the znode is missing
	if err != nil {
		log.Fatal(err)
	}
	if _, err := downloads.Acquire(ctx, 1); err != nil {
		log.Fatal(err)
	}
	_, err = downloads.TryAcquire(ctx, 1)
	fmt.Println("a second:", errors.Is(err, lease.ErrHeld))
	if _, err := client.Set(ctx, number, binary.BigEndian.AppendUint32(nil, 2), framework.AnyVersion); err != nil {
		log.Fatal(err)
	}
	_, err = downloads.Acquire(ctx, 1)
	fmt.Println("a second of two:", err)
	// Output:
	// a second: true
	// a second of two: <nil>
}
