// Shard-assignment spreads shards over the workers that are alive. Membership is an
// ephemeral znode for each worker; all compute the same assignment from the list of
// members, and nobody negotiates. Lists may differ for a moment, so each shard has a lock
// besides: who works on a shard holds its lock, and there are never two. That is in
// worker.go; this file lets workers come and go, and shows who works on what.
//
//	go run ./examples/shard-assignment                          on a server within the program
//	go run ./examples/shard-assignment -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/docent-go/docent/examples/internal/example"
	"github.com/docent-go/docent/framework"
)

// A board knows who works on what, beside ZooKeeper and across all workers.
type board struct {
	shards  []string
	changed chan struct{} // of capacity 1: a change to look at

	mu    sync.Mutex // guards following
	at    map[string]string
	puts  int
	fault error // two at one shard
}

func newBoard(shards int) *board {
	b := &board{changed: make(chan struct{}, 1), at: make(map[string]string)}
	for i := range shards {
		b.shards = append(b.shards, fmt.Sprintf("s%d", i+1))
	}
	return b
}

// workOf returns what a worker does: it has its name on the board.
func (b *board) workOf(name string) func(context.Context, string) {
	return func(ctx context.Context, shard string) {
		b.put(shard, "", name)
		<-ctx.Done()
		b.put(shard, name, "")
	}
}

func (b *board) put(shard, before, after string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := b.at[shard]; got != before {
		b.fault = errors.Join(b.fault, fmt.Errorf("%s: %q beside %q", shard, got, before+after))
	}
	b.at[shard] = after
	b.puts++
	b.changedLocked()
}

// report is for a worker that has ended: not well, if err is not nil.
func (b *board) report(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = errors.Join(b.fault, err)
	b.changedLocked()
}

func (b *board) changedLocked() {
	select {
	case b.changed <- struct{}{}:
	default: // somebody is about to look
	}
}

// settle waits until each shard is worked on by the member that it falls to.
func (b *board) settle(ctx context.Context, members []string) (string, error) {
	for {
		if shown, settled, err := b.show(members); settled || err != nil {
			return shown, err
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (b *board) show(members []string) (shown string, settled bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	settled = true
	var lines strings.Builder
	for _, member := range members {
		fmt.Fprintf(&lines, "  %s:", member)
		for _, shard := range b.shards {
			if owner(shard, members) == member {
				settled = settled && b.at[shard] == member
				fmt.Fprintf(&lines, " %s", shard)
			}
		}
		lines.WriteString("\n")
	}
	return lines.String(), settled, b.fault
}

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
