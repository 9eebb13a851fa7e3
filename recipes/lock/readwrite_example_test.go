package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
)

func ExampleRWMutex() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	catalogue, err := lock.NewRWMutex(client, "/locks/catalogue")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	err = lock.Do(ctx, catalogue.Read(), func(context.Context, *lock.Lease) error {
		another := lock.ContextWithOwner(ctx, lock.NewOwner("another"))
		shared, err := catalogue.Read().TryLock(another)
		if err != nil {
			return err
		}
		_, err = catalogue.Write().TryLock(another)
		fmt.Println("a reader has to release before it can write:", errors.Is(err, lock.ErrUpgrade))
		if err := shared.Release(ctx); err != nil {
			return err
		}
		_, err = catalogue.Write().TryLock(another)
		fmt.Println("no owner writes while another one reads:", errors.Is(err, lock.ErrHeld))
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// a reader has to release before it can write: true
	// no owner writes while another one reads: true
	// error: <nil>
}

// The writer reads its data back before another writer can change it, and others may read it
// meanwhile.
func ExampleRWMutex_downgrade() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	index, err := lock.NewRWMutex(client, "/locks/index")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	writing, err := index.Write().Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	reading, err := index.Read().Lock(ctx) // at once
	if err != nil {
		log.Fatal(err)
	}
	if err := writing.Release(ctx); err != nil {
		log.Fatal(err)
	}
	another := lock.ContextWithOwner(ctx, lock.NewOwner("another"))
	_, err = index.Write().TryLock(another)
	fmt.Println("no writer got in:", errors.Is(err, lock.ErrHeld))
	shared, err := index.Read().TryLock(another)
	fmt.Println("readers do:", err == nil)
	if err := errors.Join(shared.Release(ctx), reading.Release(ctx)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// no writer got in: true
	// readers do: true
}

// An urgent job asks the holder to release the lock.
func ExampleRevoke() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	asked := make(chan struct{}, 1)
	disk, err := lock.NewMutex(client, "/locks/disk", recipes.WithRevocation(func(*lock.Lease) { asked <- struct{}{} }))
	if err != nil {
		log.Fatal(err)
	}
	lease, err := disk.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}

	found, err := disk.Participants(ctx) // by any process, of any lock
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range found {
		if p.Holder {
			err = errors.Join(err, lock.Revoke(ctx, client, p.Path))
		}
	}
	fmt.Println("asked:", err)

	<-asked // and the work is put off
	fmt.Println("released:", lease.Release(ctx))
	// Output:
	// asked: <nil>
	// released: <nil>
}
