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

func ExampleLease_Context() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/import")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := mutex.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	held, cancel := lease.Context(context.Background())
	defer cancel()

	// An operator breaks the lock.
	if err := client.Delete(context.Background(), lease.Node()); err != nil {
		log.Fatal(err)
	}
	<-held.Done()
	var lost *lock.LostError
	fmt.Println(errors.As(context.Cause(held), &lost), lost)
	// Output: true lease: lost /locks/import: its znode was deleted by another client
}

func ExampleLease_Lost() {
	client, closeAll := recipetest.ExampleClient()
	mutex, err := lock.NewMutex(client, "/locks/import")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := mutex.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", lease.Err() == nil)
	closeAll() // ends the session, and all that is held in it
	<-lease.Lost()
	fmt.Println(errors.Is(lease.Err(), lock.ErrLost), lease.Err())
	// Output:
	// held: true
	// true lease: lost /locks/import: client closed
}

// A store that keeps the largest fence it has seen refuses whoever comes with a
// smaller one: a holder that lost the lock and could not be told.
func ExampleLease_Fence() {
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

func ExampleLease_Release() {
	mutex, closeAll := exampleMutex("/locks/report")
	defer closeAll()
	ctx := context.Background()
	lease, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Release(ctx))
	fmt.Println(errors.Is(lease.Release(ctx), lock.ErrReleased))
	// Output:
	// <nil>
	// true
}

// All members' guards in one transaction: it is done while all the locks are held.
func ExampleLease_Guards() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	var locks []lock.Locker
	for _, path := range []string{"/locks/anna", "/locks/bert"} {
		mutex, err := lock.NewMutex(client, path)
		if err != nil {
			log.Fatal(err)
		}
		locks = append(locks, mutex)
	}
	both, err := lock.NewMulti(locks...)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := both.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Txn(ctx, lease.Guards()...)
	fmt.Println("while both are held:", err)
	fmt.Println(lease.Release(ctx))
	_, err = client.Txn(ctx, lease.Guards()...)
	fmt.Println("refused after that:", err != nil)
	// Output:
	// while both are held: <nil>
	// <nil>
	// refused after that: true
}
