package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
)

// Lock waits no longer than its context lasts; the lease is not bound to it.
func ExampleMutex_Lock() {
	mutex, closeAll := exampleMutex("/locks/report")
	defer closeAll()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	lease, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	cancel()
	fmt.Println("lease:", lease.Err())

	brief, cancel := context.WithTimeout(
		lock.ContextWithOwner(context.Background(), lock.NewOwner("somebody else")), 10*time.Millisecond)
	defer cancel()
	_, err = mutex.Lock(brief)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	fmt.Println("released:", lease.Release(context.Background()))
	// Output:
	// lease: <nil>
	// true
	// released: <nil>
}

func ExampleMutex_TryLock() {
	mutex, closeAll := exampleMutex("/locks/report")
	defer closeAll()
	ctx := context.Background()
	another := lock.ContextWithOwner(ctx, lock.NewOwner("somebody else"))
	lease, err := mutex.Lock(another)
	if err != nil {
		log.Fatal(err)
	}
	_, err = mutex.TryLock(ctx)
	fmt.Println(errors.Is(err, lock.ErrHeld), err)
	fmt.Println(lease.Release(ctx))
	// Output:
	// true lock: try lock /locks/report: held by another owner
	// <nil>
}

// Unlock releases by identity, as Curator does: for call sites that keep no lease.
func ExampleMutex_Unlock() {
	mutex, closeAll := exampleMutex("/locks/report")
	defer closeAll()
	ctx := context.Background()
	if _, err := mutex.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	stranger := lock.ContextWithOwner(ctx, lock.NewOwner("stranger"))
	fmt.Println(errors.Is(mutex.Unlock(stranger), lock.ErrNotOwner))
	fmt.Println(mutex.Unlock(ctx), mutex.Held(ctx))
	// Output:
	// true
	// <nil> 0
}

// Participants returns the holder and the waiters, for people who look for a stuck lock.
func ExampleMutex_Participants() {
	queued := make(chan struct{}, 1)
	mutex, closeAll := exampleMutex("/locks/report",
		recipes.WithData([]byte("job 17")),
		recipes.WithQueuePosition(func(ahead int) {
			if ahead > 0 {
				queued <- struct{}{}
			}
		}))
	defer closeAll()
	ctx := context.Background()
	anna := lock.ContextWithOwner(ctx, lock.NewOwner("anna"))
	bert := lock.ContextWithOwner(ctx, lock.NewOwner("bert"))
	lease, err := mutex.Lock(anna)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- lock.Do(bert, mutex, func(context.Context, *lock.Lease) error { return nil }) }()
	<-queued

	all, err := mutex.Participants(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range all {
		fmt.Printf("%s, %q, holds it: %v\n", p.Metadata.Owner, p.Data, p.Holder)
	}
	fmt.Println(lease.Release(ctx), <-done)
	// Output:
	// anna, "job 17", holds it: true
	// bert, "job 17", holds it: false
	// <nil> <nil>
}

// An owner that the context carries is asked for by whoever needs to know.
func ExampleOwnerFromContext() {
	ctx := lock.ContextWithOwner(context.Background(), lock.NewOwner("request 17"))
	owner, ok := lock.OwnerFromContext(ctx)
	fmt.Println(owner, ok)

	// The name is only shown: each Owner is another.
	fmt.Println(owner == lock.NewOwner("request 17"))
	_, ok = lock.OwnerFromContext(context.Background()) // then it is the goroutine
	fmt.Println(ok)
	// Output:
	// request 17 true
	// false
	// false
}

// Do tells of a loss even where the function has not noticed.
func ExampleDo_lost() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), mutex, func(ctx context.Context, _ *lock.Lease) error {
		all, err := mutex.Participants(ctx)
		if err != nil {
			return err
		}
		if err := client.Delete(ctx, all[0].Path); err != nil { // an operator breaks the lock
			return err
		}
		<-ctx.Done()
		return nil
	})
	fmt.Println(errors.Is(err, lock.ErrLost), err)
	// Output: true lease: lost /locks/report: its znode was deleted by another client
}
