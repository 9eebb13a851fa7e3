package contender

import (
	"context"
	"fmt"
	"time"
)

// A Cacher is a session of a library that has caches of a part of the tree.
type Cacher interface {
	// Cache fills a cache of the znode at path and of everything below it.
	Cache(ctx context.Context, path string) (Cache, error)

	// Set writes a znode.
	Set(ctx context.Context, path string, data []byte) error
}

// A Cache is what a library knows of a part of the tree. One goroutine uses it.
type Cache interface {
	// Len returns the number of znodes.
	Len() int

	// Next prepares for the next change of a znode. wait waits until the library has called its user
	// with the data, and returns when that was.
	Next(ctx context.Context, path string) (wait func(context.Context) (time.Time, error), err error)

	Close() error
}

// cacher returns a session that has caches.
func (s *stage) cacher(session int) (Cacher, error) {
	c, ok := s.sessions[session].(Cacher)
	if !ok {
		return nil, errKind("cache")
	}
	return c, nil
}

// filled returns a filled cache of a tree with p.workers znodes below its path.
func (s *stage) filled(ctx context.Context, p plan) (Cache, error) {
	session, err := s.cacher(0)
	if err != nil {
		return nil, err
	}
	c, err := session.Cache(ctx, p.path)
	if err != nil {
		return nil, err
	}
	if n := c.Len(); n != p.workers+1 {
		return nil, fmt.Errorf("the cache has %d znodes, want %d", n, p.workers+1)
	}
	return c, nil
}

// fill fills one cache after another.
func (s *stage) fill(ctx context.Context, p plan) (result, error) {
	r := result{ops: p.ops}
	before := mallocs()
	for range p.ops {
		begun := time.Now()
		c, err := s.filled(ctx, p)
		if err != nil {
			return result{}, err
		}
		r.samples = append(r.samples, time.Since(begun))
		r.elapsed += time.Since(begun)
		if err := c.Close(); err != nil {
			return result{}, err
		}
	}
	r.mallocs = mallocs() - before
	return r, nil
}

// change has the second session write a znode that the first session has in a cache. Only the time
// until the cache has the data counts.
func (s *stage) change(ctx context.Context, p plan) (r result, err error) {
	c, err := s.filled(ctx, p)
	if err != nil {
		return r, err
	}
	writer, err := s.cacher(1)
	if err != nil {
		return r, err
	}
	path := p.path + "/0/7"
	r.ops = p.ops
	before := mallocs()
	for i := range p.ops {
		wait, err := c.Next(ctx, path)
		if err != nil {
			return r, err
		}
		if err := pause(ctx, p.settle); err != nil {
			return r, err
		}
		written := make(chan error, 1)
		begun := time.Now()
		go func() { written <- writer.Set(ctx, path, fmt.Appendf(nil, "%d", i)) }()
		changed, err := wait(ctx)
		if err != nil {
			return r, err
		}
		r.samples = append(r.samples, changed.Sub(begun))
		r.elapsed += changed.Sub(begun)
		if err := <-written; err != nil {
			return r, err
		}
	}
	r.mallocs = mallocs() - before
	return r, c.Close()
}

// cached keeps a filled cache.
func (s *stage) cached(ctx context.Context, p plan) (result, error) {
	before, start := mallocs(), time.Now()
	c, err := s.filled(ctx, p)
	if err != nil {
		return result{}, err
	}
	elapsed := time.Since(start)
	if err := s.gate(ctx); err != nil {
		return result{}, err
	}
	r := result{elapsed, p.workers, []time.Duration{elapsed}, mallocs() - before}
	return r, c.Close()
}
