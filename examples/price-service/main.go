// Price-service is a port of PriceService.java, from Curator to docent. Both may run at the same time:
// one of all their instances leads, and all of them follow its prices.
//
//	go run ./examples/price-service                          on a server within the program
//	go run ./examples/price-service -connect localhost:2181  on yours
package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
)

// A priceSetter sets the prices while it leads.
type priceSetter struct {
	client *framework.Client
	rounds *counter.Counter
}

// lead sets the prices each second, until ctx ends: the term was lost, or the service ends.
func (s *priceSetter) lead(ctx context.Context, _ *lease.Lease) error {
	for {
		round, err := s.rounds.Add(ctx, 1)
		if err != nil {
			return err
		}
		for _, fruit := range []string{"apple", "pear"} {
			price := strconv.FormatInt(round*int64(len(fruit)), 10)
			if _, err := s.client.CreateOrSet(ctx, "/prices/"+fruit, []byte(price), framework.WithParents()); err != nil {
				return err
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

// show prints a price that is new.
func show(out io.Writer, e cache.Event) {
	if (e.Kind == cache.Added || e.Kind == cache.Changed) && e.Path() != "/prices" {
		fmt.Fprintf(out, "%s is %s\n", e.Path(), e.New.Data)
	}
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	prices, err := cache.New(client, "/prices")
	if err != nil {
		return err
	}
	defer func() { _ = prices.Close() }()
	prices.OnEvent(func(e cache.Event) { show(out, e) })
	rounds, err := counter.New(client, "/rounds")
	if err != nil {
		return err
	}
	election, err := leader.New(client, "/leader", leader.WithFormat(leader.Selector), leader.WithID("go-1"))
	if err != nil {
		return err
	}
	err = election.Run(ctx, (&priceSetter{client, rounds}).lead)
	if ctx.Err() != nil {
		return nil // Ctrl-C
	}
	return err
}

func main() { harness.Main(run) }
