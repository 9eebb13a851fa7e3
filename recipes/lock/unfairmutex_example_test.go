package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
)

// One of several hosts is to do a job; the others go on with something else.
func ExampleUnfairMutex() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	job, err := lock.NewUnfairMutex(client, "/jobs/nightly")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	lease, err := job.TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = job.TryLock(ctx)
	fmt.Println("held:", errors.Is(err, lock.ErrHeld))
	fmt.Println("znode:", lease.Node())
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// held: true
	// znode: /jobs/nightly
}
