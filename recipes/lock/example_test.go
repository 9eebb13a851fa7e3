package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
)

func ExampleDo() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), mutex, func(ctx context.Context, _ *lock.Lease) error {
		fmt.Println("no other owner is here; held", mutex.Held(ctx), "time")
		return ctx.Err() // ends when the lock is lost
	})
	fmt.Println("error:", err)
	// Output:
	// no other owner is here; held 1 time
	// error: <nil>
}

func ExampleMutex() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/account-7")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	lease, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	again, err := mutex.Lock(ctx) // the same goroutine: at once
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("lock count:", mutex.Held(ctx))

	stranger := lock.ContextWithOwner(ctx, lock.NewOwner("somebody else"))
	_, err = mutex.TryLock(stranger)
	fmt.Println("refused:", errors.Is(err, lock.ErrHeld))

	if err := errors.Join(again.Release(ctx), lease.Release(ctx)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Err())
	// Output:
	// lock count: 2
	// refused: true
	// lease: hold /locks/account-7: released: acquire it again
}

func ExampleContextWithOwner() {
	mutex, closeAll := exampleMutex("/locks/batch")
	defer closeAll()
	ctx := lock.ContextWithOwner(context.Background(), lock.NewOwner("batch 3"))
	err := lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) error {
		helped := make(chan error)
		go func() { // another goroutine of the same owner re-enters
			helped <- lock.Do(ctx, mutex, func(context.Context, *lock.Lease) error { return nil })
		}()
		return <-helped
	})
	fmt.Println("error:", err)
	// Output: error: <nil>
}

func ExampleLease_guard() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/config", []byte("old")); err != nil {
		log.Fatal(err)
	}
	mutex, err := lock.NewMutex(client, "/locks/config")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	write := framework.OpSet("/config", []byte("new"), framework.AnyVersion)
	_, err = client.Txn(ctx, lease.Guard(), write)
	fmt.Println("while the lock is held:", err)
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = client.Txn(ctx, lease.Guard(), write)
	fmt.Println("after that, refused:", errors.Is(err, framework.ErrNoNode))
	// Output:
	// while the lock is held: <nil>
	// after that, refused: true
}

// The wait ends after 100 ms, and the work may take longer.
func ExampleWaitAtMost() {
	mutex, closeAll := exampleMutex("/locks/report")
	defer closeAll()
	ctx := context.Background()
	if _, err := mutex.Lock(lock.ContextWithOwner(ctx, lock.NewOwner("another"))); err != nil {
		log.Fatal(err)
	}
	err := lock.Do(ctx, mutex, func(context.Context, *lock.Lease) error { return nil }, lock.WaitAtMost(100*time.Millisecond))
	fmt.Println("the wait took too long:", errors.Is(err, context.DeadlineExceeded))
	// Output: the wait took too long: true
}

// If another owner holds the lock, the work is skipped.
func ExampleWithoutWaiting() {
	mutex, closeAll := exampleMutex("/locks/report")
	defer closeAll()
	ctx := context.Background()
	if _, err := mutex.Lock(lock.ContextWithOwner(ctx, lock.NewOwner("another"))); err != nil {
		log.Fatal(err)
	}
	err := lock.Do(ctx, mutex, func(context.Context, *lock.Lease) error { return nil }, lock.WithoutWaiting())
	fmt.Println("another owner holds it:", errors.Is(err, lock.ErrHeld))
	// Output: another owner holds it: true
}

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
