// Config-watch has a service that keeps its configuration in a cache. It starts with what is there,
// follows each change, and goes on with what it has while the connection is away.
//
//	go run ./examples/config-watch                          on a server within the program
//	go run ./examples/config-watch -connect localhost:2181  on yours
package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
)

const path = "/examples/config-watch"

// set writes a setting as an operator would, by a client of its own.
func set(ctx context.Context, operator *framework.Client, name, value string) error {
	_, err := operator.Create(ctx, path+"/"+name, []byte(value), framework.WithParents())
	return err
}

// next waits for the next event of a znode below the path, and prints it.
func next(out io.Writer, events <-chan cache.Event) {
	for e := range events {
		name, below := strings.CutPrefix(e.Path(), path+"/")
		if !below {
			continue
		}
		switch e.Kind {
		case cache.Added:
			fmt.Fprintf(out, "%s is %s\n", name, e.New.Data)
		case cache.Changed:
			fmt.Fprintf(out, "%s was %s and is %s\n", name, e.Old.Data, e.New.Data)
		case cache.Removed:
			fmt.Fprintf(out, "%s is gone\n", name)
		}
		return
	}
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	operator, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { _ = operator.Close() }()
	if err := set(ctx, operator, "limit", "10"); err != nil {
		return err
	}

	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	config, err := cache.New(client, path)
	if err != nil {
		return err
	}
	defer func() { _ = config.Close() }()
	if err := config.Ready(ctx); err != nil { // a service reports itself ready after this
		return err
	}
	limit, _ := config.Get(path + "/limit")
	fmt.Fprintf(out, "the service starts with limit %s\n", limit.Data)

	events := make(chan cache.Event)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx, or with the cache
		for e := range config.Events(ctx) {
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	next(out, events) // what is there comes first
	if _, err := operator.Set(ctx, path+"/limit", []byte("20"), framework.AnyVersion); err != nil {
		return err
	}
	next(out, events)
	if err := set(ctx, operator, "mode", "fast"); err != nil {
		return err
	}
	next(out, events)
	if err := operator.Delete(ctx, path+"/mode"); err != nil {
		return err
	}
	next(out, events)
	return operator.Delete(ctx, path+"/limit")
}

func main() { harness.Main(run) }
