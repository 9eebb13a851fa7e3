package rendezvous

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// Leave releases the lease of a member's place, and waits until all members that were in have left.
// If the lease is lost, Leave returns that error and does not wait.
//
// Leave follows Curator's protocol. Every member but the first in the order of the names deletes its
// znode, and waits until that of the first is gone. The first waits until it is alone, and then
// deletes ready and its own znode. So one event tells all others that all are out. Members that
// enter after Leave began belong to the next use of the barrier.
func (g *Gate) Leave(ctx context.Context, l *lease.Lease) error {
	_, own := framework.SplitPath(l.Node())
	var inside []string // the other members that were in, and have not left
	for first := true; ; first = false {
		names, err := g.list(ctx)
		switch {
		case err != nil && ctx.Err() == nil && waitqueue.Disconnected(err) && l.Err() == nil:
			if err := g.Client.AwaitConnected(ctx); err != nil {
				return errors.Join(err, release(ctx, l))
			}
			continue
		case err != nil:
			return errors.Join(err, release(ctx, l))
		case l.Err() != nil && !errors.Is(l.Err(), lease.ErrReleased):
			return l.Err()
		}
		members := slices.DeleteFunc(membersOf(names), func(name string) bool { return name == own })
		if first {
			inside = members
		}
		inside = slices.DeleteFunc(inside, func(name string) bool { return !slices.Contains(members, name) })
		switch {
		case len(inside) == 0:
			return g.leaveLast(ctx, l, slices.Contains(names, readyName) && len(members) == 0)
		case own < inside[0]:
			err = g.awaitGone(ctx, inside[len(inside)-1], l)
		default:
			if err = release(ctx, l); err == nil {
				err = g.awaitGone(ctx, inside[0], nil)
			}
		}
		switch {
		case errors.Is(err, lease.ErrLost):
			return err
		case err != nil:
			return errors.Join(err, release(ctx, l))
		}
	}
}

// leaveLast ends a leave when no other member is in. It deletes ready, unless members have entered
// again.
func (g *Gate) leaveLast(ctx context.Context, l *lease.Lease, ready bool) error {
	var err error
	if ready {
		err = Except(g.Client.Delete(ctx, g.ready()), framework.ErrNoNode)
	}
	return errors.Join(err, release(ctx, l))
}

// list returns the children of the barrier's directory.
func (g *Gate) list(ctx context.Context) ([]string, error) {
	names, _, err := g.Client.Children(ctx, g.Path)
	return names, Except(err, framework.ErrNoNode)
}

// awaitGone waits until the member's znode is gone, or may be. If held is not nil, it also ends when
// that lease is lost.
func (g *Gate) awaitGone(ctx context.Context, member string, held *lease.Lease) error {
	if held != nil {
		var cancel context.CancelFunc
		ctx, cancel = held.Context(ctx)
		defer cancel()
	}
	watch, err := g.Client.Watch(ctx, framework.JoinPath(g.Path, member), framework.WatchData)
	if err == nil {
		err = waitqueue.AwaitFired(ctx, g.Client, watch)
		watch.Close()
	}
	switch {
	case held != nil && held.Err() != nil:
		return held.Err()
	case errors.Is(err, framework.ErrNoNode), waitqueue.Disconnected(err) && ctx.Err() == nil:
		return nil
	}
	return err
}

// release releases the lease, unless that was done before.
func release(ctx context.Context, l *lease.Lease) error {
	return Except(l.Release(ctx), lease.ErrReleased)
}
