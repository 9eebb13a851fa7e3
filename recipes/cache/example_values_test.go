package cache_test

import (
	"context"
	"fmt"
	"log"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/model"
)

// A znode that is no route has an error of its own, and hides no other.
func ExampleOf() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	for path, data := range map[string]string{"/routes/mail": `{"host":"mail-1"}`, "/routes/web": `"web-1"`} {
		if _, err := client.Create(ctx, path, []byte(data), framework.WithParents()); err != nil {
			log.Fatal(err)
		}
	}

	tree, err := cache.New(client, "/routes")
	if err != nil {
		log.Fatal(err)
	}
	defer tree.Close()
	if err := tree.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	routes := cache.Of(tree, model.JSON[route]())
	for _, v := range routes.All() {
		fmt.Println(v.Path, v.Value.Host, v.Err)
	}
	mail, err := routes.Get("/routes/mail")
	fmt.Println(mail.Host, err)
	// Output:
	// /routes/mail mail-1 <nil>
	// /routes/web  at byte 7 there is no JSON of a cache_test.route
	// mail-1 <nil>
}

// A pattern finds the parts of a path. Of returns the values, and their paths say what they are for.
func ExampleOf_pattern() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	const pattern model.Pattern = "/routes/{service}/{instance}"
	codec := model.JSON[route]()
	for instance, host := range map[string]string{"mail-1": "10.0.0.7", "mail-2": "10.0.0.8"} {
		path, err := pattern.Path("mail", instance)
		if err != nil {
			log.Fatal(err)
		}
		data, err := codec.Encode(route{Host: host})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := client.Create(ctx, path, data, framework.WithParents()); err != nil {
			log.Fatal(err)
		}
	}

	tree, err := cache.New(client, "/routes")
	if err != nil {
		log.Fatal(err)
	}
	defer tree.Close()
	if err := tree.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	for _, v := range cache.Of(tree, codec).All() {
		if names, ok := pattern.Match(v.Path); ok { // in the order of the pattern
			fmt.Println("service", names[0], "instance", names[1], "host", v.Value.Host)
		}
	}
	// Output:
	// service mail instance mail-1 host 10.0.0.7
	// service mail instance mail-2 host 10.0.0.8
}
