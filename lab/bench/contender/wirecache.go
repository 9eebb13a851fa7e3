package contender

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// atOnce is how many requests the wire contender has on the way while it reads a tree.
const atOnce = 1000

func (s wireSession) Set(_ context.Context, path string, data []byte) error {
	_, err := s.conn.Set(path, data, -1)
	return err
}

// Cache reads each znode and lists each one that has children. It keeps nothing.
func (s wireSession) Cache(_ context.Context, path string) (Cache, error) {
	c := &wireCache{conn: s.conn}
	for level := []string{path}; len(level) > 0; {
		below := make([][]string, len(level))
		err := together(min(atOnce, len(level)), func(worker int) (err error) {
			for i := worker; i < len(level) && err == nil; i += atOnce {
				below[i], err = c.read(level[i])
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		level = nil
		for _, paths := range below {
			level = append(level, paths...)
		}
	}
	return c, nil
}

// A wireCache is the requests that a cache can't do without.
type wireCache struct {
	conn  *zk.Conn
	count atomic.Int64
}

// read reads a znode, and returns the paths of its children.
func (c *wireCache) read(path string) (below []string, err error) {
	c.count.Add(1)
	_, stat, err := c.conn.Get(path)
	if err != nil || stat.NumChildren == 0 {
		return nil, err
	}
	names, _, err := c.conn.Children(path)
	for _, name := range names {
		below = append(below, path+"/"+name)
	}
	return below, err
}

func (c *wireCache) Len() int { return int(c.count.Load()) }

// Next sets a watch. wait waits for its event, and reads the znode.
func (c *wireCache) Next(_ context.Context, path string) (func(context.Context) (time.Time, error), error) {
	_, _, events, err := c.conn.GetW(path)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (time.Time, error) {
		select {
		case event := <-events:
			if event.Err != nil {
				return time.Time{}, event.Err
			}
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
		_, _, err := c.conn.Get(path)
		return time.Now(), err
	}, nil
}

func (c *wireCache) Close() error { return nil }
