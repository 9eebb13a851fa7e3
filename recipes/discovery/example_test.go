package discovery_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkserver"
)

// A place is the payload of the example's services. Java's class for it is com.example.Place.
type place struct {
	Zone string `json:"zone"`
}

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

	ctx := context.Background()
	services, err := discovery.New[place](client, "/services", discovery.WithClass("com.example.Place"))
	if err != nil {
		log.Fatal(err)
	}
	defer services.Close(ctx)
	registration, err := services.Register(discovery.Instance[place]{
		Name: "web", ID: "web-1", Address: "10.0.0.7", Port: 8080, Payload: place{Zone: "eu"},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := registration.Await(ctx); err != nil {
		log.Fatal(err)
	}

	web, err := services.Watch("web")
	if err != nil {
		log.Fatal(err)
	}
	for instances, err := range web.Changes(ctx) { // now, and after each change
		if err != nil {
			log.Println(err) // the client may not read them; the last ones are known
			continue
		}
		for _, in := range instances {
			fmt.Printf("%s: %s:%d in %s\n", in.ID, in.Address, in.Port, in.Payload.Zone)
		}
		break
	}
	// Output: web-1: 10.0.0.7:8080 in eu
}

// A znode that is no instance is left out of the list, and reported.
func ExampleWithUnreadable() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/services/web/web-1", []byte("10.0.0.7"), framework.WithParents()); err != nil {
		log.Fatal(err)
	}

	services, err := discovery.New[place](client, "/services", discovery.WithUnreadable(func(path string, err error) {
		fmt.Println("left out:", path, err != nil)
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer services.Close(ctx)
	instances, err := services.Instances(ctx, "web")
	fmt.Println(len(instances), err)
	// Output:
	// left out: /services/web/web-1 true
	// 0 <nil>
}

// Java processes whose Curator writes the field "enabled" read whether an instance is disabled.
func ExampleWithDisabledField() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	services, err := discovery.New[place](client, "/services", discovery.WithDisabledField())
	if err != nil {
		log.Fatal(err)
	}
	defer services.Close(ctx)
	registration, err := services.Register(discovery.Instance[place]{Name: "web", ID: "web-1", Disabled: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := registration.Await(ctx); err != nil {
		log.Fatal(err)
	}
	data, _, err := client.Get(ctx, "/services/web/web-1")
	fmt.Println(strings.Contains(string(data), `"enabled":false`), err)
	// Output: true <nil>
}
