package lock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
)

// Any goroutine that has the lease may release it.
func ExampleSemaphoreMutex() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	mutex, err := lock.NewSemaphoreMutex(client, "/locks/import")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	lease, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- lease.Release(ctx) }()
	fmt.Println("released:", <-done)

	lease, err = mutex.TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("locked again; released:", lease.Release(ctx))
	// Output:
	// released: <nil>
	// locked again; released: <nil>
}
