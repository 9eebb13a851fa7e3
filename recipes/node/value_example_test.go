package node_test

import (
	"context"
	"fmt"
	"log"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
)

func ExampleNewValue() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()

	type worker struct {
		Zone string `json:"zone"`
		Busy bool   `json:"busy"`
	}
	ctx := context.Background()
	self, err := node.NewValue(client, "/workers/w1", worker{Zone: "eu"}, model.JSON[worker]())
	if err != nil {
		log.Fatal(err)
	}
	defer self.Close(ctx)
	if err := self.Set(ctx, worker{Zone: "eu", Busy: true}); err != nil { // now, and whenever the znode is created again
		log.Fatal(err)
	}
	data, _, err := client.Get(ctx, "/workers/w1")
	fmt.Println(string(data), err)
	// Output: {"zone":"eu","busy":true} <nil>
}
