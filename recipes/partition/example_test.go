package partition_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/testing/zkserver"
)

func Example() {
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

	shards, err := partition.New(client, "/shards", []string{"s1", "s2", "s3"}, recipes.WithSettle(0))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var begun sync.WaitGroup
	begun.Add(3) // this process is the only member: all keys fall to it
	go func() { begun.Wait(); cancel() }()
	err = shards.Run(ctx, func(ctx context.Context, key string, _ *lease.Lease) error {
		fmt.Println("serving", key)
		begun.Done()
		<-ctx.Done() // the key moves, its lease is lost, or Run ends
		return ctx.Err()
	})
	fmt.Println(err)
	// Unordered output:
	// serving s1
	// serving s2
	// serving s3
	// partition: run /shards: context canceled
}

// Owners has the ids of the members, so an id that names the process says who serves a key.
func ExampleWithID() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()

	shards, err := partition.New(client, "/shards", []string{"s1"}, partition.WithID("host-7"), recipes.WithSettle(0))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_ = shards.Run(ctx, func(ctx context.Context, key string, _ *lease.Lease) error {
		owners, err := shards.Owners(ctx)
		fmt.Println(owners[key], err)
		cancel() // ends Run
		return nil
	})
	// Output: host-7 <nil>
}
