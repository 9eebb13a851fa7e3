// Leader-election has three candidates of package leader and an observer. A candidate that resigns is
// behind the others, the next one leads when a leader's process ends, and the observer sees who leads.
//
//	go run ./examples/leader-election                          on a server within the program
//	go run ./examples/leader-election -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
)

const path = "/examples/election"

// A candidate is one process of the demonstration.
type candidate struct {
	name   string
	client *framework.Client
	resign chan struct{}
	done   chan error // of Run
}

// stand has a new candidate run for leadership, and returns when it is the nth in the queue.
func stand(ctx context.Context, zk harness.ZooKeeper, name string, n int) (*candidate, error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return nil, err
	}
	election, err := leader.New(client, path, leader.WithID(name))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	c := &candidate{name, client, make(chan struct{}), make(chan error, 1)}
	go func() { // ends with ctx, or with the client, which run closes
		c.done <- election.Run(ctx, func(ctx context.Context, _ *lease.Lease) error {
			select { // the leader's work goes here; it stops with its context
			case <-c.resign:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	for {
		all, err := election.Participants(ctx)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		if len(all) == n {
			return c, nil
		}
		<-time.After(10 * time.Millisecond)
	}
}

// observe returns a channel of who leads, "" for no leader.
func observe(ctx context.Context, c *framework.Client) (<-chan string, error) {
	election, err := leader.New(c, path)
	if err != nil {
		return nil, err
	}
	seen := make(chan string)
	go func() { // ends with ctx
		for p, known := range election.Observe(ctx) {
			name := ""
			if known {
				name = string(p.Data)
			}
			select {
			case seen <- name:
			case <-ctx.Done():
			}
		}
	}()
	return seen, nil
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	observer, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { _ = observer.Close() }()
	seen, err := observe(ctx, observer)
	if err != nil {
		return err
	}
	leads := func(name string) error {
		for {
			select {
			case now := <-seen:
				if now == name {
					fmt.Fprintf(out, "%s leads\n", name)
					return nil
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}

	var line []*candidate
	for i, name := range []string{"anna", "bert", "carla"} {
		c, err := stand(ctx, zk, name, i+1)
		if err != nil {
			return err
		}
		defer func() { _ = c.client.Close() }() // may be a second time
		line = append(line, c)
	}
	if err := leads("anna"); err != nil {
		return err
	}
	fmt.Fprintln(out, "anna resigns")
	close(line[0].resign)
	if err := leads("bert"); err != nil {
		return err
	}
	if err := line[1].client.Close(); err != nil { // as if its process ended
		return err
	}
	fmt.Fprintf(out, "bert is gone: %v\n", errors.Is(<-line[1].done, framework.ErrClosed))
	if err := leads("carla"); err != nil {
		return err
	}
	cancel()
	return errors.Join(ended(<-line[0].done), ended(<-line[2].done))
}

// ended returns nil for the end of a Run by its context.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func main() { harness.Main(run) }
