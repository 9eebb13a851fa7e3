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

// filled returns a filled cache of a tree with p.Workers znodes below its path.
func (s *stage) filled(ctx context.Context, p Plan) (Cache, error) {
	session, err := s.cacher(0)
	if err != nil {
		return nil, err
	}
	c, err := session.Cache(ctx, p.Path)
	if err != nil {
		return nil, err
	}
	if n := c.Len(); n != p.Workers+1 {
		return nil, fmt.Errorf("the cache has %d znodes, want %d", n, p.Workers+1)
	}
	return c, nil
}

// fill fills one cache after another. Only that counts.
func (s *stage) fill(ctx context.Context, p Plan) (Answer, error) {
	r := Answer{Ops: p.Ops}
	before := mallocs()
	for range p.Ops {
		begun := time.Now()
		c, err := s.filled(ctx, p)
		if err != nil {
			return Answer{}, err
		}
		r.Samples = append(r.Samples, time.Since(begun))
		r.Elapsed += time.Since(begun)
		if err := c.Close(); err != nil {
			return Answer{}, err
		}
	}
	r.Mallocs = mallocs() - before
	return r, nil
}

// change has the second session write a znode that the first session has in a cache. Only the time
// until the cache has the data counts.
func (s *stage) change(ctx context.Context, p Plan) (r Answer, err error) {
	c, err := s.filled(ctx, p)
	if err != nil {
		return r, err
	}
	writer, err := s.cacher(1)
	if err != nil {
		return r, err
	}
	path := p.Path + "/0/7"
	r.Ops = p.Ops
	before := mallocs()
	for i := range p.Ops {
		wait, err := c.Next(ctx, path)
		if err != nil {
			return r, err
		}
		if err := pause(ctx, p.Settle); err != nil {
			return r, err
		}
		written := make(chan error, 1)
		begun := time.Now()
		go func() { written <- writer.Set(ctx, path, fmt.Appendf(nil, "%d", i)) }()
		changed, err := wait(ctx)
		if err != nil {
			return r, err
		}
		r.Samples = append(r.Samples, changed.Sub(begun))
		r.Elapsed += changed.Sub(begun)
		if err := <-written; err != nil {
			return r, err
		}
	}
	r.Mallocs = mallocs() - before
	return r, c.Close()
}

// cached keeps a filled cache.
func (s *stage) cached(ctx context.Context, p Plan) (Answer, error) {
	var c Cache
	samples := make([]time.Duration, 1)
	a, err := measured(p.Workers, samples, func() (err error) {
		begun := time.Now()
		c, err = s.filled(ctx, p)
		samples[0] = time.Since(begun)
		return err
	})
	if err == nil {
		err = s.gate()
	}
	if err != nil {
		return Answer{}, err
	}
	return a, c.Close()
}
