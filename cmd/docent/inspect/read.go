package inspect

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
)

// Read returns the lock at the path with all its contenders. If there are none, the Lock has the path
// alone, even if the path does not exist.
//
// Read sends a sync first, so it shows whatever was granted before the call. It costs one listing and
// one read per contender in addition. A semaphore costs two listings more, and one of kazoo a listing
// and a read. A contender whose znode the client may not read has the fields that follow from its
// name. If ctx ends first, the error wraps ctx's. Other errors are [framework.ErrNoAuth] for the path
// itself, and those of every operation of the client.
func Read(ctx context.Context, c *framework.Client, path string) (l Lock, err error) {
	defer func() { err = callError(ctx, c, "read", path, err) }()
	if err := errors.Join(clientFault(c), framework.ValidatePath(path)); err != nil {
		return Lock{}, err
	}
	if err := c.Sync(ctx, path); err != nil {
		return Lock{}, err
	}
	r := &reader{client: c}
	dirs, err := r.list(ctx, []string{path})
	if err != nil {
		return Lock{}, err
	}
	if len(dirs) == 0 {
		for _, u := range r.unread {
			return Lock{}, u.Err
		}
		return Lock{Path: path, Complete: true}, nil
	}
	if len(dirs[0].Children) == 0 {
		return r.childless(ctx, path)
	}
	return r.lockOf(ctx, dirs[0])
}

// childless returns the lock at a path without children: an unfair mutex, or a semaphore of kazoo that
// no contender holds.
func (r *reader) childless(ctx context.Context, path string) (Lock, error) {
	z, l, err := r.exclusive(ctx, path)
	if _, numbered := kazooPermits(z.Data); err != nil || l.Kind != "" || !numbered {
		return l, err
	}
	z.Queue = &Znode{Path: path + kazooQueue}
	return r.lockOf(ctx, z)
}

// exclusive returns the znode, and docent's unfair mutex if the znode is one. Without metadata its
// epoch shows it.
func (r *reader) exclusive(ctx context.Context, path string) (Znode, Lock, error) {
	free := Lock{Path: path, Complete: true}
	read, err := r.read(ctx, []string{path})
	z, ok := read[path]
	if err != nil || !ok {
		return z, free, err
	}
	if l, ok := Of(z); ok {
		return z, l, nil
	}
	_, ok, err = r.client.Exists(ctx, zkpath.Epoch(path))
	if err != nil || !ok {
		return z, free, err
	}
	return z, exclusiveAt(z), nil
}
