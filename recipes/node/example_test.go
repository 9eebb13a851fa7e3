package node_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
)

// A service keeps a znode with its address. Another process can't take the same name.
func ExampleNode() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	web, err := node.New(client, "/services/web/a", []byte(`{"zone":"eu"}`))
	if err != nil {
		log.Fatal(err)
	}
	if err := web.Await(ctx); err != nil { // the znode exists
		log.Fatal(err)
	}
	if err := web.Set(ctx, []byte(`{"zone":"us"}`)); err != nil {
		log.Fatal(err)
	}
	data, _, err := client.Get(ctx, web.Path())
	fmt.Println(string(data), err)
	fmt.Println(web.Close(ctx)) // deletes it
	_, exists, err := client.Exists(ctx, "/services/web/a")
	fmt.Println(exists, err)
	// Output:
	// {"zone":"us"} <nil>
	// <nil>
	// false <nil>
}

// A znode of another session is neither deleted nor adopted.
func ExampleNode_Await() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/services/web/a", nil, framework.Ephemeral(), framework.WithParents()); err != nil {
		log.Fatal(err) // as another process would
	}
	web, err := node.New(client, "/services/web/a", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close(ctx)
	fmt.Println(errors.Is(web.Await(ctx), node.ErrTaken))
	// Output: true
}

// A Sequential node has a number of its own.
func ExampleSequential() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	worker, err := node.New(client, "/workers/worker-", nil, node.Sequential())
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close(ctx)
	if err := worker.Await(ctx); err != nil {
		log.Fatal(err)
	}
	path := worker.Path()
	fmt.Println(path[len(path)-len("worker-0000000000"):])
	// Output: worker-0000000000
}

// A znode with a TTL outlives its client: the ensemble deletes it when no Node has kept it for ten minutes.
func ExampleWithTTL() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	cursor, err := node.New(client, "/imports/cursor", []byte("page 7"), node.WithTTL(10*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	if err := cursor.Await(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cursor.Close(ctx)) // leaves it
	data, _, err := client.Get(ctx, "/imports/cursor")
	fmt.Println(string(data), err)
	// Output:
	// <nil>
	// page 7 <nil>
}

// A persistent znode belongs to no session, and outlives the process.
func ExamplePersistent() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	version, err := node.New(client, "/schema/version", []byte("7"), node.Persistent())
	if err != nil {
		log.Fatal(err)
	}
	if err := version.Await(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(version.Close(ctx)) // leaves it
	data, stat, err := client.Get(ctx, "/schema/version")
	fmt.Println(string(data), stat.EphemeralOwner == 0, err)
	// Output:
	// <nil>
	// 7 true <nil>
}

// A persistent znode that another client created is adopted only if its data say so.
func ExampleWithAdoption() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	for name, data := range map[string]string{"ours": "owner=billing", "theirs": "owner=shop"} {
		if _, err := client.Create(ctx, "/state/"+name, []byte(data), framework.WithParents()); err != nil {
			log.Fatal(err)
		}
	}
	for _, name := range []string{"ours", "theirs"} {
		state, err := node.New(client, "/state/"+name, []byte("owner=billing"), node.Persistent(),
			node.WithAdoption(func(data []byte) bool { return string(data) == "owner=billing" }))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, "is taken:", errors.Is(state.Await(ctx), node.ErrTaken))
		_ = state.Close(ctx)
	}
	// Output:
	// ours is taken: false
	// theirs is taken: true
}
