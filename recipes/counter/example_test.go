package counter_test

import (
	"context"
	"fmt"
	"log"

	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/model"
)

// Two processes number their orders. One takes a block of numbers.
func ExampleCounter() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	orders, err := counter.New(client, "/sequences/orders")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	id, err := orders.Add(ctx, 1)
	fmt.Println("one order:", id, err)
	first, err := orders.Take(ctx, 100)
	fmt.Println("a hundred orders from:", first, err)
	id, err = orders.Add(ctx, 1)
	fmt.Println("the next order:", id, err)
	// Output:
	// one order: 1 <nil>
	// a hundred orders from: 2 <nil>
	// the next order: 102 <nil>
}

// All returns a value now and whenever it changes.
func ExampleValue() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	limits, err := counter.NewValue(client, "/settings/limits", model.JSON[map[string]int]())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := limits.Set(ctx, map[string]int{"exports": 1}); err != nil {
		log.Fatal(err)
	}
	for value, err := range limits.All(ctx) {
		fmt.Println(value, err)
		if value["exports"] == 2 {
			break
		}
		_, err = limits.Update(ctx, func(old map[string]int, _ bool) (map[string]int, error) {
			old["exports"]++
			return old, nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// map[exports:1] <nil>
	// map[exports:2] <nil>
}

// With 4 bytes the znode is that of Curator's SharedCount.
func ExampleWithInt32() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	shards, err := counter.New(client, "/settings/shards", counter.WithInt32())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := shards.Set(ctx, 12); err != nil {
		log.Fatal(err)
	}
	data, _, err := client.Get(ctx, "/settings/shards")
	fmt.Println(data, err)
	// Output: [0 0 0 12] <nil>
}
