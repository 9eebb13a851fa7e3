// Your-own-recipe builds a recipe on package framework alone, as docent's own are built: a baton that
// one client carries at a time. The recipe is in baton.go. A session that ends takes the baton away,
// and the carrier knows before the next client can take it.
//
//	go run ./examples/your-own-recipe                          on a server within the program
//	go run ./examples/your-own-recipe -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
)

const path = "/examples/baton"

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	var runners [2]*framework.Client
	for i := range runners {
		client, err := framework.NewClient(zk.Connect, zk.Dialer)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		runners[i] = client
	}
	first, err := (&Baton{runners[0], path}).Take(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the first runner carries the baton")

	taken := make(chan error, 1)
	var second *Carried
	go func() { // ends with ctx, or with the baton
		var err error
		second, err = (&Baton{runners[1], path}).Take(ctx)
		taken <- err
	}()
	if err := runners[0].Close(); err != nil { // its session ends, and the baton with it
		return err
	}
	<-first.Lost()
	if err := <-taken; err != nil {
		return err
	}
	fmt.Fprintln(out, "the first runner lost the baton, and the second one carries it")
	if second.Fence() <= first.Fence() {
		return errors.New("the fence did not grow")
	}
	if err := second.Return(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "the second runner gave it back")
	return nil
}

func main() { harness.Main(run) }
