package contender

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
)

func (s docentSession) Set(ctx context.Context, path string, data []byte) error {
	_, err := s.client.Set(ctx, path, data, framework.AnyVersion)
	return err
}

func (s docentSession) Cache(ctx context.Context, path string) (Cache, error) {
	c, err := cache.New(s.client, path)
	if err != nil {
		return nil, err
	}
	if err := c.Ready(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &docentCache{Cache: c}, nil
}

// A docentCache notes when its znodes have changed.
type docentCache struct {
	*cache.Cache
	changed chan time.Time // nil before Next
}

func (c *docentCache) Len() int { return c.Snapshot().Len() }

func (c *docentCache) Next(context.Context, string) (func(context.Context) (time.Time, error), error) {
	if c.changed == nil {
		c.changed = make(chan time.Time, 1)
		c.OnEvent(func(e cache.Event) {
			if e.Kind == cache.Changed {
				c.changed <- time.Now()
			}
		})
	}
	return func(ctx context.Context) (time.Time, error) {
		select {
		case at := <-c.changed:
			return at, nil
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}, nil
}
