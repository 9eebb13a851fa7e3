// Rate-limit runs exports on several hosts, at most three at a time on all hosts together. A large
// export takes two permits at once. Exports that wait are not overtaken.
//
//	go run ./examples/rate-limit                          on a server within the program
//	go run ./examples/rate-limit -connect localhost:2181  on yours
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
	"github.com/docent-go/docent/recipes/semaphore"
)

const (
	path    = "/examples/exports"
	permits = 3
)

// A load is what runs at one time, counted outside ZooKeeper.
type load struct {
	mu       sync.Mutex // guards following
	now, max int
}

func (l *load) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now += n
	l.max = max(l.max, l.now)
}

// export runs one export, which takes n permits.
func export(ctx context.Context, limit *semaphore.Semaphore, n int, l *load) (err error) {
	lease, err := limit.Acquire(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Release(context.WithoutCancel(ctx))) }()
	work, cancel := lease.Context(ctx) // ends if the permits are lost
	defer cancel()
	l.add(n)
	defer l.add(-n)
	select {
	case <-time.After(20 * time.Millisecond): // the export
		return nil
	case <-work.Done():
		return context.Cause(work)
	}
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	const hosts, exports = 3, 4
	var l load
	var all sync.WaitGroup
	faults := make(chan error, hosts*exports)
	for range hosts {
		client, err := framework.NewClient(zk.Connect, zk.Dialer)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }() // its session has nothing that others wait for
		limit, err := semaphore.New(client, path, permits)
		if err != nil {
			return err
		}
		for i := range exports {
			all.Go(func() { faults <- export(ctx, limit, 1+i%2, &l) })
		}
	}
	all.Wait()
	close(faults)
	for fault := range faults {
		err = errors.Join(err, fault)
	}
	if l.max > permits {
		err = errors.Join(err, fmt.Errorf("%d permits of %d were in use", l.max, permits))
	}
	fmt.Fprintf(out, "%d exports are done, at most %d permits in use at a time\n", hosts*exports, l.max)
	return err
}

func main() { harness.Main(run) }
