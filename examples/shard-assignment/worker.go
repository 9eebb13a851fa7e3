package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/lock"
)

const root = "/examples/shards"

// A worker is a member that works on the shards that fall to it.
type worker struct {
	client *framework.Client
	name   string // no other's
	shards []string
	work   func(ctx context.Context, shard string) // until ctx ends
}

// run takes part until ctx ends. If ctx ends or run fails, all work has stopped when run returns.
func (w *worker) run(ctx context.Context) (err error) {
	members, err := group.New(w.client, root+"/members")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, members.Close(context.WithoutCancel(ctx))) }() // after the work
	if _, err := members.Join(w.name, nil); err != nil {
		return err
	}
	working, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	mine := make(map[string]context.CancelFunc) // what ends the work on each shard
	for all := range members.Changes(working) {
		for _, shard := range w.shards {
			end, begun := mine[shard]
			switch falls := owner(shard, ids(all)) == w.name; {
			case falls && !begun:
				on, end := context.WithCancel(working)
				mine[shard] = end
				running.Go(func() {
					if err := w.keep(on, shard); err != nil {
						stop(err)
					}
				})
			case !falls && begun:
				end()
				delete(mine, shard)
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case working.Err() != nil:
		return context.Cause(working)
	}
	return framework.ErrClosed // nothing else ends the changes
}

// ids returns the names of the members.
func ids(members []group.Member) []string {
	var names []string
	for _, m := range members {
		names = append(names, m.ID)
	}
	return names
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
