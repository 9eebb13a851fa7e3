package group_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/internal/recipetest"
)

// Two workers join a group, which shows both.
func ExampleGroup() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	workers, err := group.New(client, "/workers")
	if err != nil {
		log.Fatal(err)
	}
	defer workers.Close(ctx) // its members leave
	for id, address := range map[string]string{"worker-1": "10.0.0.7:9000", "worker-2": "10.0.0.8:9000"} {
		if _, err := workers.Join(id, []byte(address)); err != nil {
			log.Fatal(err)
		}
	}
	for members, err := range workers.Changes(ctx) { // now, and after each change
		if err != nil || len(members) < 2 {
			continue // the members are not all there yet, or may not be read
		}
		for _, m := range members {
			fmt.Println(m.ID, string(m.Data))
		}
		break
	}
	// Output:
	// worker-1 10.0.0.7:9000
	// worker-2 10.0.0.8:9000
}

// Members that come or go one soon after another are one change, as in a rolling restart.
func ExampleGroup_Changes_settled() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	workers, err := group.New(client, "/workers", recipes.WithSettle(250*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	defer workers.Close(ctx)
	for _, id := range []string{"worker-1", "worker-2", "worker-3"} {
		if _, err := workers.Join(id, nil); err != nil {
			log.Fatal(err)
		}
	}
	for members, err := range workers.Changes(ctx) { // nothing before the three have been members for 250 ms
		if err != nil || len(members) < 3 {
			continue // a slow machine: more than 250 ms between two of them
		}
		fmt.Println(len(members), "workers")
		break
	}
	// Output: 3 workers
}
