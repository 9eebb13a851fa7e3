package locktest

import (
	"context"
	"errors"
	"math"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
)

// leftovers returns the ephemeral nodes at path and below it, as c sees them once its
// server is up to date.
func leftovers(ctx context.Context, c *framework.Client, path string) ([]string, error) {
	if err := c.Sync(ctx, path); err != nil {
		return nil, err
	}
	return ephemeralsBelow(ctx, c, path)
}

func ephemeralsBelow(ctx context.Context, c *framework.Client, path string) ([]string, error) {
	st, ok, err := c.Exists(ctx, path)
	if err != nil || !ok {
		return nil, err
	}
	if ephemeral(st) {
		return []string{path}, nil // which has no children
	}
	names, _, err := c.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		below, err := ephemeralsBelow(ctx, c, zkpath.Join(path, name))
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// ephemeral reports whether a node belongs to a session. Containers and nodes with a
// TTL have their highest bit, or byte, set instead.
func ephemeral(st framework.Stat) bool {
	return st.EphemeralOwner != 0 && st.EphemeralOwner != math.MinInt64 && uint64(st.EphemeralOwner)>>56 != 0xff
}
