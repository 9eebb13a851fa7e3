// Sequence numbers orders on several hosts. Each host takes a block of numbers from a counter and
// gives them out from memory, so an order costs no request. A host that ends leaves a gap.
//
//	go run ./examples/sequence                          on a server within the program
//	go run ./examples/sequence -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/counter"
)

const (
	path  = "/examples/orders"
	block = 10
)

// A sequence gives out numbers that no other sequence of the path gives out. It may be used
// concurrently.
type sequence struct {
	numbers *counter.Counter

	mu         sync.Mutex // guards following
	next, last int64      // of the block
}

// Next returns the next number.
func (s *sequence) Next(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock() // the callers behind want the same block
	if s.next == 0 || s.next > s.last {
		first, err := s.numbers.Take(ctx, block)
		for errors.Is(err, framework.ErrUnknownOutcome) && ctx.Err() == nil {
			first, err = s.numbers.Take(ctx, block) // the block before is a gap, if it was taken
		}
		if err != nil {
			return 0, err
		}
		s.next, s.last = first, first+block-1
	}
	s.next++
	return s.next - 1, nil
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	const hosts, orders = 3, 25
	var mu sync.Mutex // guards following
	given, faults := make(map[int64]bool), []error(nil)
	var all sync.WaitGroup
	for range hosts {
		client, err := framework.NewClient(zk.Connect, zk.Dialer)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }() // its session has nothing that others wait for
		numbers, err := counter.New(client, path)
		if err != nil {
			return err
		}
		s := &sequence{numbers: numbers}
		all.Go(func() {
			for range orders {
				n, err := s.Next(ctx)
				mu.Lock()
				if err != nil || given[n] {
					faults = append(faults, errors.Join(err, fmt.Errorf("number %d: given before: %v", n, given[n])))
				}
				given[n] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	fmt.Fprintf(out, "%d orders have %d different numbers\n", hosts*orders, len(given))
	return errors.Join(faults...)
}

func main() { harness.Main(run) }
