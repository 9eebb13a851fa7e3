package lock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
)

func ExampleNewMulti() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	from, err := lock.NewMutex(client, "/locks/accounts/7")
	if err != nil {
		log.Fatal(err)
	}
	to, err := lock.NewMutex(client, "/locks/accounts/3")
	if err != nil {
		log.Fatal(err)
	}
	both, err := lock.NewMulti(from, to)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	err = lock.Do(ctx, both, func(ctx context.Context, _ *lock.Lease) error {
		fmt.Println("both accounts are ours:", from.Held(ctx), to.Held(ctx))
		return ctx.Err() // ends when either lock is lost
	})
	fmt.Println("error:", err)
	fmt.Println("locked in the order", both.Members())
	// Output:
	// both accounts are ours: 1 1
	// error: <nil>
	// locked in the order [/locks/accounts/3 /locks/accounts/7]
}

func ExampleMulti_TryLock() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	var locks []lock.Locker
	for _, path := range []string{"/locks/a", "/locks/b", "/locks/c"} {
		mutex, err := lock.NewMutex(client, path)
		if err != nil {
			log.Fatal(err)
		}
		locks = append(locks, mutex)
	}
	all, err := lock.NewMulti(locks...)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	stranger := lock.ContextWithOwner(ctx, lock.NewOwner("somebody else"))
	held, err := locks[1].Lock(stranger)
	if err != nil {
		log.Fatal(err)
	}
	_, err = all.TryLock(ctx)
	fmt.Println(err)
	if err := held.Release(ctx); err != nil {
		log.Fatal(err)
	}
	lease, err := all.TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, member := range lease.Members() {
		fmt.Println("holding", member.Path())
	}
	fmt.Println("released:", lease.Release(ctx) == nil)
	// Output:
	// lock: try lock /locks/b: held by another owner
	// holding /locks/a
	// holding /locks/b
	// holding /locks/c
	// released: true
}
