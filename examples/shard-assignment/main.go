// Shard-assignment spreads shards over the workers that are alive. The workers are a group: all
// compute the same assignment from its members, without negotiation. Two workers may see different
// members for a moment, so each shard also has a lock, which its worker holds. There are never two
// workers of one shard. That is in worker.go. This file lets workers come and go, and a board
// shows which worker has which shard.
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

	"github.com/docent-go/docent/examples/internal/example"
	"github.com/docent-go/docent/framework"
)

// start has a worker take part, as a process of its own would, until leave is called.
func (b *board) start(ctx context.Context, zk example.ZooKeeper, name string) (leave func() error, err error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() { // ends when leave is called, which waits for it
		w := &worker{client, name, b.shards, b.workOf(name)}
		err := w.run(ctx)
		b.report(err)
		result <- err
	}()
	return sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-result, client.Close())
	}), nil
}

func run(ctx context.Context, zk example.ZooKeeper, out io.Writer) (err error) {
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

func main() { example.Main(run) }
