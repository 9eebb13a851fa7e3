// Quickstart lets several processes take turns on one distributed lock.
//
//	go run ./examples/quickstart                          on a server within the program
//	go run ./examples/quickstart -real                    on an Apache ZooKeeper that it starts
//	go run ./examples/quickstart -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// work is the body of each worker process. It acquires the lock, does something that no other
// process may do at the same time, and releases the lock.
func work(ctx context.Context, connect string, id, rounds int) (err error) {
	client, err := framework.NewClient(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	mutex, err := lock.NewMutex(client, "/quickstart/lock")
	if err != nil {
		return err
	}
	for range rounds {
		lease, err := mutex.Lock(ctx) // waits for its turn
		if err != nil {
			return err
		}
		fence := lease.Fence()
		fmt.Printf("worker %d: acquired, fence %d\n", id, fence)

		again, err := mutex.Lock(ctx) // reentrant: the holder acquires it again at once
		if err != nil {
			return err
		}
		fmt.Printf("worker %d:   works, lock count %d\n", id, mutex.Held(ctx))
		<-time.After(50 * time.Millisecond) // the work
		fmt.Printf("worker %d: releases\n", id)
		if err := errors.Join(again.Release(ctx), lease.Release(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	var opts options
	flag.StringVar(&opts.connect, "connect", "", "ZooKeeper to use, as in host1:2181,host2:2181/chroot")
	flag.BoolVar(&opts.real, "real", false, "without -connect: start an Apache ZooKeeper")
	flag.IntVar(&opts.workers, "workers", 4, "how many processes contend, at least 1")
	flag.IntVar(&opts.rounds, "rounds", 2, "how often each of them takes the lock, at least 1")
	id := flag.Int("worker", 0, "be the worker of this number (for the program itself)")
	flag.Parse()
	if opts.workers < 1 || opts.rounds < 1 {
		fmt.Fprintf(os.Stderr, "quickstart: -workers %d, -rounds %d: must be at least 1\n", opts.workers, opts.rounds)
		os.Exit(2)
	}
	run := opts.supervise
	if *id > 0 {
		run = func(ctx context.Context) error { return work(ctx, opts.connect, *id, opts.rounds) }
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}
