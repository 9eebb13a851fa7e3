// Cron-singleton runs a job once per interval, on whichever of several hosts comes
// first. Each host wakes at each interval and tries an UnfairMutex, which costs one
// round trip: who is refused goes back to sleep. The lock alone is not enough: a host
// whose clock is behind comes when the job is done and the lock is free again. So there
// is a record of the last run, too, and it is written before the job begins: a job that
// fails is not run again. Write it after the job for the opposite.
//
//	go run ./examples/cron-singleton                          on a server within the program
//	go run ./examples/cron-singleton -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

const (
	record   = "/examples/cron/last"
	interval = 200 * time.Millisecond
)

// A host runs the job at intervals, unless another one does.
type host struct {
	client *framework.Client
	turn   *lock.UnfairMutex
	late   time.Duration // by how much the host's clock is behind
	job    func(ctx context.Context, run int64) error
}

// tick runs the job of an interval, unless another host runs it or has run it.
func (h *host) tick(ctx context.Context, run int64) (err error) {
	lease, err := h.turn.TryLock(ctx)
	if errors.Is(err, lock.ErrHeld) {
		return nil // another host runs it
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Release(ctx)) }()
	work, cancel := lease.Context(ctx)
	defer cancel()

	data, st, err := h.client.Get(work, record)
	if err != nil {
		return err
	}
	last, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || last >= run {
		return err // it is done
	}
	// By the version that was read: a host that was stopped since the read is refused.
	// It is what fences here.
	if _, err := h.client.Set(work, record, []byte(strconv.FormatInt(run, 10)), st.Version); err != nil {
		return err
	}
	return h.job(work, run)
}

// schedule ticks at each interval until ctx ends. A tick that failed leaves its
// run to the other hosts.
func (h *host) schedule(ctx context.Context, failed func(error)) {
	for {
		next := time.Now().Truncate(interval).Add(interval)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next) + h.late):
		}
		if err := h.tick(ctx, next.UnixNano()/int64(interval)); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}

// newHost returns a host that has connected.
func newHost(ctx context.Context, zk harness.ZooKeeper, late time.Duration, job func(context.Context, int64) error) (*host, error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return nil, err
	}
	turn, err := lock.NewUnfairMutex(client, "/examples/cron/turn")
	if err == nil {
		_, err = client.Create(ctx, record, []byte("0"), framework.WithParents())
	}
	if err != nil && !errors.Is(err, framework.ErrNodeExists) {
		return nil, errors.Join(err, client.Close())
	}
	return &host{client, turn, late, job}, nil
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		mu      sync.Mutex // guards following
		runs    = make(map[int64]int)
		faults  []error
		hosts   sync.WaitGroup
		clients []*framework.Client
	)
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
	}()
	for i := range 3 {
		h, err := newHost(ctx, zk, time.Duration(i)*interval/4, func(_ context.Context, run int64) error {
			mu.Lock()
			defer mu.Unlock()
			runs[run]++
			fmt.Fprintf(out, "run %d: by host %d\n", len(runs), i+1)
			if len(runs) == 5 {
				stop() // enough for an example
			}
			return nil
		})
		if err != nil {
			return err
		}
		clients = append(clients, h.client)
		hosts.Go(func() {
			h.schedule(ctx, func(err error) { mu.Lock(); defer mu.Unlock(); faults = append(faults, err) })
		})
	}
	hosts.Wait()
	for run, times := range runs {
		if times != 1 {
			faults = append(faults, fmt.Errorf("run %d was made %d times", run, times))
		}
	}
	return errors.Join(faults...)
}

func main() { harness.Main(run) }
