package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
)

const root = "/examples/shards"

// A worker is a member that works on the shards that fall to it.
type worker struct {
	client *framework.Client
	name   string // no other's
	shards []string
	work   func(ctx context.Context, shard string) // until ctx ends
}

// run takes part until ctx ends; then, or when it fails, it has stopped all work.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var (
		running sync.WaitGroup
		failed  = make(chan error, 1)                 // of work on a shard, the first
		mine    = make(map[string]context.CancelFunc) // what ends the work on each shard
	)
	defer running.Wait()
	defer cancel()
	for {
		members, err := w.join(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, shard := range w.shards {
			stop, working := mine[shard]
			switch falls := owner(shard, members.Children()) == w.name; {
			case falls && !working:
				on, stop := context.WithCancel(ctx)
				mine[shard] = stop
				running.Go(func() {
					if err := w.keep(on, shard); err != nil {
						select {
						case failed <- err:
						default: // one is enough
						}
					}
				})
			case !falls && working:
				stop()
				delete(mine, shard)
			}
		}
		select {
		case <-members.Fired(): // members have changed, or the session has, and our znode is gone
			members.Close()
		case <-ctx.Done():
			members.Close()
			return nil
		case err := <-failed:
			members.Close()
			return err
		}
	}
}

// join sees to the worker's own znode and returns a watch of all members. It does not
// give up where the client does, by its own policy: a worker waits out any outage. And
// what is there already, and not of this session, is of an earlier session of ours,
// which the ensemble has not ended yet.
func (w *worker) join(ctx context.Context) (*framework.Watch, error) {
	return retry.Value(ctx, retry.Forever(time.Second), func(ctx context.Context) (*framework.Watch, error) {
		_, err := w.client.Create(ctx, root+"/members/"+w.name, nil,
			framework.Ephemeral(), framework.WithParents(), framework.Idempotent())
		if err == nil {
			var members *framework.Watch
			if members, err = w.client.Watch(ctx, root+"/members", framework.WatchChildren); err == nil {
				return members, nil
			}
		}
		if framework.Retryable(err) || errors.Is(err, framework.ErrNodeExists) {
			return nil, err
		}
		return nil, retry.Permanent(err)
	})
}

// keep works on a shard whenever it has the shard's lock, until ctx ends.
func (w *worker) keep(ctx context.Context, shard string) error {
	mutex, err := lock.NewMutex(w.client, root+"/locks/"+shard)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) error {
			w.work(ctx, shard)
			return nil
		})
		passes := errors.Is(err, lock.ErrLost) || framework.Retryable(err)
		if err != nil && !passes && ctx.Err() == nil {
			return err
		}
	}
	return nil // where the release failed, it goes on in the background
}

// owner returns the member that a shard falls to, by rendezvous hashing: where a
// member comes or goes, only those shards move that fall to it or did.
func owner(shard string, members []string) (name string) {
	var most [sha256.Size]byte
	for _, member := range members {
		if weight := sha256.Sum256([]byte(member + "/" + shard)); bytes.Compare(weight[:], most[:]) > 0 {
			name, most = member, weight
		}
	}
	return name
}
