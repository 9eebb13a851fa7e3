package barrier_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
)

// Workers wait until the migration is over.
func ExampleBarrier() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	migration, err := barrier.New(client, "/barriers/migration")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := migration.Set(ctx); err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- migration.Wait(ctx) }()
	fmt.Println("migrated:", migration.Remove(ctx))
	fmt.Println("work begins:", <-done)
	// Output:
	// migrated: <nil>
	// work begins: <nil>
}

// Three members begin a step together and end it together.
func ExampleDouble() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	const members = 3
	step, err := barrier.NewDouble(client, "/barriers/step", members)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	var wg sync.WaitGroup
	for range members {
		wg.Go(func() {
			place, err := step.Enter(ctx)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("works, as all are in")
			if err := step.Leave(ctx, place); err != nil {
				log.Fatal(err)
			}
		})
	}
	wg.Wait()
	fmt.Println("all are out")
	// Output:
	// works, as all are in
	// works, as all are in
	// works, as all are in
	// all are out
}
