package cache_test

import (
	"context"
	"fmt"
	"log"
	"path"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
)

func set(client *framework.Client, path, data string) {
	if _, err := client.CreateOrSet(context.Background(), path, []byte(data), framework.WithParents()); err != nil {
		panic(err)
	}
}

// A service keeps its routes in memory: reading one sends no request.
func ExampleCache() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	set(client, "/config/routes/web", "10.0.0.7")

	routes, err := cache.New(client, "/config/routes")
	if err != nil {
		log.Fatal(err)
	}
	defer routes.Close()
	ctx := context.Background()
	if err := routes.Ready(ctx); err != nil { // waits until the cache is filled
		log.Fatal(err)
	}
	web, err := routes.Get("/config/routes/web")
	fmt.Println(string(web.Data), err)

	set(client, "/config/routes/web", "10.0.0.8")
	if err := routes.Sync(ctx); err != nil { // sees what was written before
		log.Fatal(err)
	}
	web, err = routes.Get("/config/routes/web")
	fmt.Println(string(web.Data), err)
	// Output:
	// 10.0.0.7 <nil>
	// 10.0.0.8 <nil>
}

// The events begin with what the cache has.
func ExampleCache_Events() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	set(client, "/config/web", "10.0.0.7")
	routes, err := cache.New(client, "/config")
	if err != nil {
		log.Fatal(err)
	}
	defer routes.Close()
	for event := range routes.Events(context.Background()) {
		switch event.Kind {
		case cache.Ready:
			fmt.Println("the cache is ready")
			set(client, "/config/web", "10.0.0.8")
		case cache.Changed:
			fmt.Printf("%s: %s became %s\n", event.Path(), event.Old.Data, event.New.Data)
			return
		}
	}
	// Output:
	// the cache is ready
	// /config/web: 10.0.0.7 became 10.0.0.8
}

// A filter and a depth bound what a cache reads and keeps.
func ExampleWithFilter() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	for _, name := range []string{"web", "web/eu", "mail", "draft-new"} {
		set(client, "/config/"+name, name)
	}
	published, err := cache.New(client, "/config",
		cache.WithDepth(1), // the path and its children
		cache.WithFilter(func(p string) bool { return !strings.HasPrefix(path.Base(p), "draft-") }))
	if err != nil {
		log.Fatal(err)
	}
	defer published.Close()
	if err := published.Ready(context.Background()); err != nil {
		log.Fatal(err)
	}
	for p := range published.Snapshot().All() {
		fmt.Println(p)
	}
	// Output:
	// /config
	// /config/mail
	// /config/web
}
