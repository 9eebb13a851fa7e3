package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// Only the user that has authenticated may read or write the lock's znodes.
func ExampleWithACL() {
	client, closeAll := recipetest.ExampleClient(framework.WithAuth("digest", []byte("billing:secret")))
	defer closeAll()
	ctx := context.Background()
	mutex, err := lock.NewMutex(client, "/locks/report", recipes.WithACL(acl.Creator()...))
	if err != nil {
		log.Fatal(err)
	}
	lease, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	entries, _, err := client.ACL(ctx, lease.Node())
	fmt.Println(len(entries), entries[0].Scheme, entries[0].Perms == acl.All, err)
	// Output: 1 digest true <nil>
}

// With OnSuspend a lease is lost as soon as the connection breaks. By default it is lost at the session's
// deadline, so that a short outage costs no lock.
func ExampleWithLossPolicy() {
	server, err := zkserver.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	for _, policy := range []lease.LossPolicy{lease.AtDeadline, lease.OnSuspend} {
		mutex, err := lock.NewMutex(client, "/locks/"+policy.String(), recipes.WithLossPolicy(policy))
		if err != nil {
			log.Fatal(err)
		}
		held, err := mutex.Lock(ctx)
		if err != nil {
			log.Fatal(err)
		}
		server.Cut()
		if policy == lease.OnSuspend {
			<-held.Lost()
		}
		if err := client.AwaitConnected(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println(policy, "lost:", errors.Is(held.Err(), lease.ErrLost))
	}
	// Output:
	// AtDeadline lost: false
	// OnSuspend lost: true
}

// Spans and metrics have the name, because the paths of a lock for each order would be too many.
func ExampleWithName() {
	spans := tracetest.NewInMemoryExporter()
	client, closeAll := recipetest.ExampleClient(framework.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans))))
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/orders/4711", recipes.WithName("orders"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := mutex.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// create
	// lock.acquire orders
}

// The contenders' znodes hold no more than Curator's: the data.
func ExampleWithoutMetadata() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	mutex, err := lock.NewMutex(client, "/locks/report", recipes.WithoutMetadata(), recipes.WithData([]byte("billing-7")))
	if err != nil {
		log.Fatal(err)
	}
	held, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	data, _, err := client.Get(ctx, held.Node())
	fmt.Println(string(data), err)
	// Output: billing-7 <nil>
}

// A waiter reports how many contenders are ahead of it.
func ExampleWithQueuePosition() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	var held *lock.Lease
	mutex, err := lock.NewMutex(client, "/locks/report", recipes.WithQueuePosition(func(position int) {
		fmt.Println("contenders ahead:", position)
		if position > 0 {
			_ = held.Release(ctx) // so that the next owner gets the lock
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	if held, err = mutex.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	next, err := mutex.Lock(lock.ContextWithOwner(ctx, lock.NewOwner("next")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next.Release(ctx))
	// Output:
	// contenders ahead: 0
	// contenders ahead: 1
	// contenders ahead: 0
	// <nil>
}

// An operator asks the holder to release the lock, and the holder does.
func ExampleWithRevocation() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	var asked sync.WaitGroup
	asked.Add(1)
	mutex, err := lock.NewMutex(client, "/locks/report", recipes.WithRevocation(func(l *lock.Lease) {
		defer asked.Done()
		fmt.Println("asked to release:", l.Release(ctx))
	}))
	if err != nil {
		log.Fatal(err)
	}
	held, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := lock.Revoke(ctx, client, held.Node()); err != nil {
		log.Fatal(err)
	}
	asked.Wait()
	// Output: asked to release: <nil>
}
