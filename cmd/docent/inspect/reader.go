package inspect

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
)

// atOnce is the maximum number of requests that are sent together.
const atOnce = 128

// A reader reads directories and the contenders in them. One goroutine uses it.
type reader struct {
	client      *framework.Client
	pace        pace.Pace
	holdersOnly bool
	unread      []Unread
	noted       map[string]bool // the paths in unread
	large       []Listing
}

// list returns the directories with the names of their children. It leaves out those that are gone
// and those that can't be read.
func (r *reader) list(ctx context.Context, paths []string) ([]Znode, error) {
	var found []Znode
	for part := range slices.Chunk(r.valid(paths), atOnce) {
		if err := r.pace.Wait(ctx, len(part)); err != nil {
			return nil, err
		}
		names, _, errs := r.client.ChildrenEach(ctx, part...)
		for i, path := range part {
			ok, err := r.check(path, errs[i])
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			found = append(found, directory(path, names[i]))
			if bytes := size(names[i]); bytes > maxListing/2 {
				r.large = append(r.large, Listing{path, bytes})
			}
		}
	}
	return found, r.listLeases(ctx, found)
}

// listLeases adds the children of directories that may be the two of a semaphore.
func (r *reader) listLeases(ctx context.Context, dirs []Znode) error {
	for i := range dirs {
		if _, ok := dirs[i].child(leasesDir); !ok {
			continue
		}
		for k, child := range dirs[i].Children {
			if name := child.name(); name != leasesDir && name != turnsDirectory {
				continue
			}
			listed, err := r.list(ctx, []string{child.Path})
			if err != nil {
				return err
			}
			if len(listed) == 1 {
				dirs[i].Children[k] = listed[0]
			}
		}
	}
	return nil
}

// read reads the znodes' data and Stats. It leaves out those that are gone. Those that can't be read
// keep their names.
func (r *reader) read(ctx context.Context, paths []string) (map[string]Znode, error) {
	found := make(map[string]Znode, len(paths))
	for part := range slices.Chunk(r.valid(paths), atOnce) {
		if err := r.pace.Wait(ctx, len(part)); err != nil {
			return nil, err
		}
		reads, errs := r.client.GetEach(ctx, part...)
		for i, path := range part {
			ok, err := r.check(path, errs[i])
			if err != nil {
				return nil, err
			}
			if ok || !errors.Is(errs[i], framework.ErrNoNode) {
				found[path] = Znode{Path: path, Data: reads[i].Data, Stat: reads[i].Stat}
			}
		}
	}
	return found, nil
}

// valid returns the valid paths, and notes the others: a server may have names that the client
// refuses.
func (r *reader) valid(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		err := framework.ValidatePath(path)
		if err != nil {
			r.note(path, err)
		}
		return err != nil
	})
}

// check reports whether a read succeeded. It notes a path that can't be read, and returns an error
// that concerns all paths.
func (r *reader) check(path string, err error) (ok bool, fault error) {
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, framework.ErrNoNode):
		return false, nil
	case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge), errors.Is(err, framework.ErrNotGzip):
		r.note(path, err)
		return false, nil
	}
	return false, err
}

func (r *reader) note(path string, err error) {
	if r.noted[path] {
		return
	}
	if r.noted == nil {
		r.noted = make(map[string]bool)
	}
	r.noted[path] = true
	r.unread = append(r.unread, Unread{path, err})
}

// maxRounds bounds how often a lock's contenders are read again, because a holder has left meanwhile.
const maxRounds = 4

// lockOf reads the contenders of the directory, and returns its lock, without a kind if there is none.
func (r *reader) lockOf(ctx context.Context, dir Znode) (Lock, error) {
	locks, err := r.locksOf(ctx, []Znode{dir})
	if err != nil {
		return Lock{}, err
	}
	return locks[0], nil
}

// locksOf reads the contenders of the directories together, and returns their locks. That of a directory
// without contenders has no kind.
func (r *reader) locksOf(ctx context.Context, dirs []Znode) ([]Lock, error) {
	locks := make([]Lock, len(dirs))
	for i := range dirs {
		var err error
		if dirs[i], err = r.withPermits(ctx, dirs[i]); err == nil {
			dirs[i], err = r.withRuns(ctx, dirs[i])
		}
		if err != nil {
			return nil, err
		}
		locks[i], _ = Of(dirs[i])
	}
	asked := map[string]bool{}
	for range maxRounds {
		var all []string
		open := make([]bool, len(dirs))
		for i := range dirs {
			wanted := r.wanted(locks[i], asked)
			open[i], all = len(wanted) > 0, append(all, wanted...)
		}
		if len(all) == 0 {
			break
		}
		znodes, err := r.read(ctx, all)
		if err != nil {
			return nil, err
		}
		for _, path := range all {
			asked[path] = true
		}
		for i := range dirs {
			if open[i] {
				dirs[i] = dirs[i].with(asked, znodes)
				locks[i], _ = Of(dirs[i])
			}
		}
	}
	return locks, nil
}

// withPermits adds the data and the queue of a directory that may be a kazoo semaphore's.
func (r *reader) withPermits(ctx context.Context, dir Znode) (Znode, error) {
	if !mayBeKazooSemaphore(dir) {
		return dir, nil
	}
	if dir.Data == nil {
		self, err := r.read(ctx, []string{dir.Path})
		if err != nil {
			return dir, err
		}
		dir.Data = self[dir.Path].Data
	}
	if _, ok := kazooPermits(dir.Data); !ok && dir.Queue == nil {
		return dir, nil
	}
	queues, err := r.list(ctx, []string{dir.Path + kazooQueue})
	if dir.Queue = nil; len(queues) > 0 {
		dir.Queue = &queues[0]
	}
	return dir, err
}

// wanted returns the paths of the contenders that are still to be read.
func (r *reader) wanted(l Lock, asked map[string]bool) []string {
	var paths []string
	for _, c := range l.Contenders {
		if !c.Read() && !asked[c.Znode] && (c.State != Waits || !r.holdersOnly) {
			paths = append(paths, c.Znode)
		}
	}
	return paths
}

// with returns the znode with those below it that were read. It leaves out those that were asked for
// and not found.
func (z Znode) with(asked map[string]bool, read map[string]Znode) Znode {
	children := make([]Znode, 0, len(z.Children))
	for _, child := range z.Children {
		found, ok := read[child.Path]
		switch {
		case ok:
			child = found
		case asked[child.Path] && child.Stat.Czxid == 0:
			continue
		case len(child.Children) > 0:
			child = child.with(asked, read)
		}
		children = append(children, child)
	}
	z.Children = children
	if z.Queue != nil {
		queue := z.Queue.with(asked, read)
		z.Queue = &queue
	}
	return z
}
