// Shard-assignment spreads shards over the workers that are alive, by package partition: all workers
// compute the same division, and each shard has a lease, so there are never two workers of one shard.
// Workers come and go, and a board shows which worker has which shard.
//
//	go run ./examples/shard-assignment                          on a server within the program
//	go run ./examples/shard-assignment -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/partition"
)

const (
	root = "/examples/shards"
	// settleTime is short, because nothing restarts here.
	settleTime = 100 * time.Millisecond
)

// start has a worker take part, as a process of its own would, until leave is called.
func (b *board) start(ctx context.Context, zk harness.ZooKeeper, name string) (leave func() error, err error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return nil, err
	}
	shards, err := partition.New(client, root, b.shards, partition.WithID(name), partition.WithSettle(settleTime))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() { // ends when leave is called, which waits for it
		err := shards.Run(ctx, b.workOf(name))
		if ctx.Err() != nil {
			err = nil // it was told to leave
		}
		b.report(err)
		result <- err
	}()
	return sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-result, client.Close())
	}), nil
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	var (
		b      = newBoard(9)
		names  = []string{"anna", "bert", "carla"}
		leaves []func() error
	)
	for i, name := range names {
		leave, err := b.start(ctx, zk, name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, leave()) }()
		leaves = append(leaves, leave)
		shown, err := b.settle(ctx, names[:i+1])
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s comes\n%s", name, shown)
	}
	if err := leaves[0](); err != nil {
		return err
	}
	shown, err := b.settle(ctx, names[1:])
	fmt.Fprintf(out, "anna goes\n%s", shown)
	return err
}

func main() { harness.Main(run) }
