package discovery

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/args"
)

// directory returns the values of the directory's znodes in the order of their names, as far as the
// client's server knows. It returns none if there is no directory. It leaves out znodes that it can't decode or
// may not read, and reports them.
func (r *reader[T]) directory(ctx context.Context, c *framework.Client, path string) ([]T, error) {
	paths, err := namesIn(ctx, c, path)
	if err != nil {
		return nil, err
	}
	for i, name := range paths {
		paths[i] = zkpath.Join(path, name)
	}
	reads, faults := c.GetEach(ctx, paths...)
	found := make([]T, 0, len(paths))
	for i, path := range paths {
		switch err := faults[i]; {
		case errors.Is(err, framework.ErrNoNode):
		case args.Unreadable(err):
			r.refuse(path, reads[i].Stat.Mzxid, err)
		case err != nil:
			return nil, err
		default:
			if value, err := r.decode(reads[i].Data); err != nil {
				r.refuse(path, reads[i].Stat.Mzxid, err)
			} else {
				found = append(found, value)
			}
		}
	}
	return found, nil
}

// namesIn returns the names of the znode's children in their order; none if there is no znode.
func namesIn(ctx context.Context, c *framework.Client, path string) ([]string, error) {
	names, _, err := c.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// maxReported bounds the znodes that a reader remembers.
const maxReported = 10_000

// A reader decodes znodes. Its methods may be called concurrently.
type reader[T any] struct {
	decode func(data []byte) (T, error)
	report func(path string, err error) // is called for a state that can't be decoded or read

	mu       sync.Mutex       // guards following; not held during report
	reported map[string]int64 // mzxid of the last report, by path
}

// refuse reports that the znode at path can't be read in the state since mzxid, if it has not done so
// yet.
func (r *reader[T]) refuse(path string, mzxid int64, err error) {
	r.mu.Lock()
	last, known := r.reported[path]
	if r.reported == nil || len(r.reported) >= maxReported {
		r.reported = make(map[string]int64) // some are reported again
	}
	r.reported[path] = mzxid
	r.mu.Unlock()
	if !known || last != mzxid {
		r.report(path, err)
	}
}
