// Leader-election builds an election on a lock.Mutex: who has the lock leads. The
// queue of the lock is the order of succession, the fence of the lease is the number
// of the term, and a leader that is lost has stopped before its successor begins. That
// is all there is to it: see election.go. This file shows it at work.
//
//	go run ./examples/leader-election                          on a server within the program
//	go run ./examples/leader-election -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docent-go/docent/examples/internal/example"
	"github.com/docent-go/docent/framework"
)

// A candidate is one process of the demonstration.
type candidate struct {
	name   string
	client *framework.Client
	*election
	resign chan struct{}
	result chan error
}

// stand has a new candidate campaign, and returns when it leads or is in line.
func stand(ctx context.Context, zk example.ZooKeeper, name string, elected chan<- string) (*candidate, error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return nil, err
	}
	standing := make(chan struct{}, 8)
	e, err := newElection(client, "/examples/election", name, func(int) {
		select {
		case standing <- struct{}{}:
		default: // that was known
		}
	})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	c := &candidate{name, client, e, make(chan struct{}), make(chan error, 1)}
	go func() { // ends with the campaign; dismiss waits for it
		c.result <- e.campaign(ctx, func(ctx context.Context, _ int64) error {
			elected <- name
			select {
			case <-c.resign:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	select {
	case <-standing:
		return c, nil
	case err := <-c.result:
		return nil, errors.Join(err, client.Close())
	}
}

func run(ctx context.Context, zk example.ZooKeeper, out io.Writer) error {
	elected := make(chan string, 3)
	var line []*candidate
	defer func() {
		for _, c := range line {
			_ = c.client.Close() // may be a second time
		}
	}()
	for _, name := range []string{"anna", "bert", "carla"} {
		c, err := stand(ctx, zk, name, elected)
		if err != nil {
			return err
		}
		line = append(line, c)
	}
	leads := func() error {
		var name string
		select {
		case name = <-elected:
		case <-ctx.Done():
			return ctx.Err()
		}
		seen, err := line[2].leader(ctx)
		fmt.Fprintf(out, "%s leads; the ensemble says %s\n", name, seen)
		return err
	}

	if err := leads(); err != nil {
		return err
	}
	close(line[0].resign)
	fmt.Fprintf(out, "anna resigns: %v\n", <-line[0].result)
	if err := leads(); err != nil {
		return err
	}
	if err := line[1].client.Close(); err != nil { // as if its process ended
		return err
	}
	fmt.Fprintf(out, "bert is gone: %v\n", errors.Is(<-line[1].result, framework.ErrClosed))
	if err := leads(); err != nil {
		return err
	}
	close(line[2].resign)
	return <-line[2].result
}

func main() { example.Main(run) }
