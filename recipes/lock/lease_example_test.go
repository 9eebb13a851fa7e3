package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
)

// exampleMutex returns a mutex on a server within the process.
func exampleMutex(path string, opts ...lock.Option) (mutex *lock.Mutex, closeAll func()) {
	client, closeAll := recipetest.ExampleClient()
	mutex, err := lock.NewMutex(client, path, opts...)
	if err != nil {
		panic(err)
	}
	return mutex, closeAll
}

// The long form of what Do does, for work that needs the lease.
func ExampleLease() {
	mutex, closeAll := exampleMutex("/locks/report")
	defer closeAll()
	ctx := context.Background()
	work := func() (err error) {
		lease, err := mutex.Lock(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lease.Release(ctx)) }()
		held, cancel := lease.Context(ctx)
		defer cancel()
		fmt.Println("at work under", lease.Path())
		return held.Err() // ends when the lock is lost
	}
	fmt.Println("error:", work())
	// Output:
	// at work under /locks/report
	// error: <nil>
}

// A store that keeps the largest fence it has seen refuses whoever comes with a
// smaller one: a holder that lost the lock and could not be told.
func ExampleLease_fence() {
	mutex, closeAll := exampleMutex("/locks/ledger")
	defer closeAll()
	ctx := context.Background()
	var seen int64
	write := func(fence int64) string {
		if fence < seen {
			return "refused"
		}
		seen = fence
		return "written"
	}
	var fences []int64
	for range 2 { // two holders, one after the other
		lease, err := mutex.Lock(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fence := lease.Fence()
		fences = append(fences, fence)
		if err := lease.Release(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(write(fences[0]), write(fences[1]), write(fences[0]))
	// Output: written written refused
}
