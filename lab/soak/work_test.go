package soak_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// callLimit bounds each call of the work, so that an outage doesn't hold up the rest.
const callLimit = 2 * time.Second

// A job is what one goroutine does again and again. Faults make it fail; that is not judged here.
type job func(ctx context.Context, c *framework.Client) error

// jobs returns the work of the client.
func jobs() []job {
	return []job{lockAndRelease, lockAndRelease, readLocked, watchAndForget, createAndDelete, writeData}
}

// work does all jobs until ctx ends, and counts what succeeded.
func work(ctx context.Context, c *framework.Client, done *atomic.Int64) {
	var wg sync.WaitGroup
	for _, do := range jobs() {
		wg.Go(func() {
			for ctx.Err() == nil {
				call, cancel := context.WithTimeout(ctx, callLimit)
				if do(call, c) == nil {
					done.Add(1)
				} else {
					<-time.After(10 * time.Millisecond) // an outage is no reason to spin
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

func lockAndRelease(ctx context.Context, c *framework.Client) error {
	m, err := lock.NewMutex(c, "/soak/mutex")
	if err != nil {
		return err
	}
	return lock.Do(ctx, m, func(context.Context, *lock.Lease) error { return nil })
}

func readLocked(ctx context.Context, c *framework.Client) error {
	rw, err := lock.NewRWMutex(c, "/soak/readwrite")
	if err != nil {
		return err
	}
	return lock.Do(ctx, rw.Read(), func(context.Context, *lock.Lease) error { return nil })
}

func watchAndForget(ctx context.Context, c *framework.Client) error {
	w, err := c.Watch(ctx, "/soak/data", framework.WatchData)
	if err != nil {
		return err
	}
	defer w.Close()
	select {
	case <-w.Fired():
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func createAndDelete(ctx context.Context, c *framework.Client) error {
	path, err := c.Create(ctx, "/soak/nodes/n-", nil,
		framework.Ephemeral(), framework.Sequential(), framework.Protected(), framework.WithParents())
	if err != nil {
		return err
	}
	err = c.Delete(ctx, path, framework.Guaranteed())
	if errors.Is(err, framework.ErrNoNode) {
		return nil // it went with its session
	}
	return err
}

func writeData(ctx context.Context, c *framework.Client) error {
	_, err := c.CreateOrSet(ctx, "/soak/data", fmt.Appendf(nil, "%d", time.Now().UnixNano()), framework.WithParents())
	return err
}
