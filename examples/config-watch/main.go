// Config-watch has a service that keeps its configuration in a cache, as values of a Go type. It starts
// with what is there, follows each change, and goes on with the last good value if one can't be decoded
// or the connection is away.
//
//	go run ./examples/config-watch                          on a server within the program
//	go run ./examples/config-watch -connect localhost:2181  on yours
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/model"
)

// limits are the znodes of the clients of the service, each with its limit as JSON.
const limits model.Pattern = "/examples/config-watch/{client}"

type limit struct {
	Requests int `json:"requests"` // in a second
}

// A service has the limits that it applies now.
type service struct {
	out    io.Writer
	limits map[string]limit
}

// apply takes over the values. Those that can't be decoded leave the client's limit as it is.
func (s *service) apply(values []cache.Value[limit]) {
	latest := make(map[string]limit)
	for _, v := range values {
		names, ok := limits.Match(v.Path)
		if !ok {
			continue
		}
		client := names[0]
		if v.Err != nil {
			fmt.Fprintf(s.out, "%s keeps %d: %v\n", client, s.limits[client].Requests, v.Err)
			v.Value = s.limits[client]
		}
		if v.Value != s.limits[client] {
			fmt.Fprintf(s.out, "%s has %d\n", client, v.Value.Requests)
		}
		latest[client] = v.Value
	}
	for client := range s.limits {
		if _, ok := latest[client]; !ok {
			fmt.Fprintf(s.out, "%s is gone\n", client)
		}
	}
	s.limits = latest
}

// An operator is another process, which writes the configuration.
type operator struct{ client *framework.Client }

func (o operator) set(ctx context.Context, client, data string) error {
	path, err := limits.Path(client)
	if err != nil {
		return err
	}
	_, err = o.client.CreateOrSet(ctx, path, []byte(data), framework.WithParents())
	return err
}

func (o operator) remove(ctx context.Context, client string) error {
	path, err := limits.Path(client)
	if err != nil {
		return err
	}
	return o.client.Delete(ctx, path)
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	writer, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { _ = writer.Close() }()
	op := operator{writer}
	if err := op.set(ctx, "web", `{"requests":10}`); err != nil {
		return err
	}

	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	tree, err := cache.New(client, "/examples/config-watch")
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()

	steps := []func() error{ // what the operator does meanwhile
		func() error { return op.set(ctx, "web", `{"requests":20}`) },
		func() error { return op.set(ctx, "web", `{"requests":"many"}`) },
		func() error { return op.set(ctx, "mail", `{"requests":5}`) },
		func() error { return op.remove(ctx, "web") },
		func() error { return op.remove(ctx, "mail") },
	}
	s := service{out: out}
	for values, err := range cache.Of(tree, model.JSON[limit]()).Changes(ctx) { // now, and at each change
		if err != nil {
			return err // the client may not read them
		}
		s.apply(values)
		if len(steps) == 0 {
			return nil
		}
		if err := steps[0](); err != nil {
			return err
		}
		steps = steps[1:]
	}
	return context.Cause(ctx)
}

func main() { harness.Main(run) }
