package reading

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
)

// Directory returns the values of the directory's znodes in the order of their names, as far as the
// client's server knows. It returns none if there is no directory. It leaves out znodes that it can't decode or
// may not read, and reports them.
func (r *Reader[T]) Directory(ctx context.Context, c *framework.Client, path string) ([]T, error) {
	paths, err := Names(ctx, c, path)
	if err != nil {
		return nil, err
	}
	for i, name := range paths {
		paths[i] = framework.JoinPath(path, name)
	}
	reads, faults := c.GetEach(ctx, paths...)
	found := make([]T, 0, len(paths))
	for i, path := range paths {
		switch err := faults[i]; {
		case errors.Is(err, framework.ErrNoNode):
		case errors.Is(err, framework.ErrNoAuth):
			r.refuse(path, reads[i].Stat.Mzxid, err)
		case err != nil:
			return nil, err
		default:
			if value, err := r.Decode(reads[i].Data); err != nil {
				r.refuse(path, reads[i].Stat.Mzxid, err)
			} else {
				found = append(found, value)
			}
		}
	}
	return found, nil
}

// Names returns the names of the znode's children in their order; none if there is no znode.
func Names(ctx context.Context, c *framework.Client, path string) ([]string, error) {
	names, _, err := c.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}
