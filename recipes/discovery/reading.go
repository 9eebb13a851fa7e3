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
func (r *reader[T]) directory(ctx context.Context, c *framework.Client, dir string) ([]T, error) {
	paths, err := namesIn(ctx, c, dir)
	if err != nil {
		return nil, err
	}
	for i, name := range paths {
		paths[i] = zkpath.Join(dir, name)
	}
	reads, faults := c.GetEach(ctx, paths...)
	found := make([]T, 0, len(paths))
	var refusals []refusal
	for i, path := range paths {
		var value T
		err := faults[i]
		switch {
		case errors.Is(err, framework.ErrNoNode):
			continue
		case err == nil:
			value, err = r.decode(reads[i].Data)
		case !args.Unreadable(err):
			return nil, err
		}
		if err != nil {
			refusals = append(refusals, refusal{path, reads[i].Stat.Mzxid, err})
			continue
		}
		found = append(found, value)
	}
	r.refuse(dir, refusals)
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

// A reader decodes znodes. Its methods may be called concurrently.
type reader[T any] struct {
	decode func(data []byte) (T, error)
	report func(path string, err error) // is called for a state that can't be decoded or read

	mu       sync.Mutex                    // guards following; not held during report
	reported map[string]map[string]refused // what was last reported, by directory and path
}

// A refused is what tells the states of a znode apart. After a restore of the ensemble one mzxid may be that of two
// states, and a znode that the client can't read has none: then their errors tell them apart.
type refused struct {
	mzxid int64
	text  string
}

// A refusal is a state of a znode that can't be decoded or read.
type refusal struct {
	path  string
	mzxid int64 // 0 if the client can't read the znode
	err   error
}

// refuse reports those of the directory's refusals that it did not have when it was last read. It remembers
// no others, so there are as many as znodes.
func (r *reader[T]) refuse(dir string, all []refusal) {
	now := make(map[string]refused, len(all))
	for _, one := range all {
		now[one.path] = refused{one.mzxid, one.err.Error()}
	}
	r.mu.Lock()
	last := r.reported[dir]
	switch {
	case len(all) == 0:
		delete(r.reported, dir)
	case r.reported == nil:
		r.reported = map[string]map[string]refused{dir: now}
	default:
		r.reported[dir] = now
	}
	r.mu.Unlock()
	for _, one := range all {
		if last[one.path] != now[one.path] {
			r.report(one.path, one.err)
		}
	}
}
