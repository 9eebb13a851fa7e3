package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/zkpath"
)

// Scan returns the locks at the root and below it. It sends a sync first, then one listing for each
// directory and each lock, and one read for each contender. It leaves out ZooKeeper's own directory,
// /zookeeper.
//
// Scan works level by level and keeps the rate of the limits. Snapshot.Unread has the paths that the
// client may not read. If the root does not exist, the Snapshot has no locks. If ctx ends first, the
// error wraps ctx's. Other errors are those of every operation of the client. With an error, the
// Snapshot has what was found before, and is not Complete.
func Scan(ctx context.Context, c *framework.Client, root string, limits Limits) (Snapshot, error) {
	if err := errors.Join(clientFault(c), framework.ValidatePath(root), limits.fault()); err != nil {
		return Snapshot{}, opError(c, "scan", root, err)
	}
	s := newScan(c, limits)
	err := s.run(ctx, root)
	return s.snapshot(), callError(ctx, c, "scan", root, err)
}

func (l Limits) fault() error {
	var faults []error
	for _, limit := range []struct {
		name  string
		value int
	}{{"depth", l.Depth}, {"max", l.Max}, {"rate", l.Rate}} {
		if limit.value < 0 {
			faults = append(faults, fmt.Errorf("%s %d: must not be negative", limit.name, limit.value))
		}
	}
	return errors.Join(faults...)
}

// system is the directory of ZooKeeper's own znodes.
const system = "/zookeeper"

// isSystem reports whether the client's path is that directory. Below a chroot or a namespace a
// directory of that name is like any other.
func isSystem(c *framework.Client, path string) bool { return c.AbsolutePath(path) == system }

// A scan walks a tree. One goroutine uses it.
type scan struct {
	reader   reader
	queues   map[string]bool // paths of directories next to which one is with the suffix kazooQueue
	limits   Limits
	at       time.Time
	locks    []Lock
	others   int  // directories that are no locks
	cut      bool // a limit ended a visit
	complete bool
}

func newScan(c *framework.Client, limits Limits) *scan {
	limits.Depth, limits.Max = cmp.Or(limits.Depth, defaultDepth), cmp.Or(limits.Max, defaultMax)
	return &scan{
		reader: reader{client: c, pace: pace.Pace{Rate: limits.Rate}, holdersOnly: limits.HoldersOnly},
		queues: make(map[string]bool), limits: limits, at: time.Now(),
	}
}

func (s *scan) snapshot() Snapshot {
	slices.SortFunc(s.locks, func(a, b Lock) int { return cmp.Compare(a.Path, b.Path) })
	return Snapshot{At: s.at, Locks: s.locks, Unread: s.reader.unread, Large: s.reader.large, Complete: s.complete}
}

func (s *scan) run(ctx context.Context, root string) error {
	if err := s.reader.client.Sync(ctx, root); err != nil {
		return err
	}
	level := []string{root}
	for depth := 0; len(level) > 0; depth++ {
		if depth > s.limits.Depth {
			return nil
		}
		var next []string
		for part := range slices.Chunk(level, atOnce) {
			if s.full() {
				return nil
			}
			below, err := s.visit(ctx, part)
			if err != nil {
				return err
			}
			next = append(next, below...)
			if s.limits.OnProgress != nil {
				s.limits.OnProgress(len(s.locks), s.others)
			}
		}
		level = next
	}
	s.complete = !s.cut
	return nil
}

func (s *scan) full() bool { return len(s.locks) >= s.limits.Max || s.others >= s.limits.Max }

// visit reads the directories, adds the locks, and returns the paths of what is to be visited below.
func (s *scan) visit(ctx context.Context, paths []string) ([]string, error) {
	dirs, err := s.reader.list(ctx, paths)
	if err != nil {
		return nil, err
	}
	var below []string
	for len(dirs) > 0 {
		if s.full() {
			s.cut = true
			break
		}
		room := s.limits.Max - max(len(s.locks), s.others) // each directory is a lock or another directory
		n := min(len(dirs), room, s.together())
		more, err := s.visitTogether(ctx, dirs[:n])
		if err != nil {
			return nil, err
		}
		below, dirs = append(below, more...), dirs[n:]
	}
	for _, path := range paths {
		if s.queues[path] { // of no semaphore: a lock of its own
			below = append(below, path+kazooQueue)
		}
	}
	return below, nil
}

// together returns for how many directories the contenders are read at once: as many as the rate lets pass in a
// tenth of a second, so that a search which its deadline ends has the locks whose reads had their turn.
func (s *scan) together() int {
	if s.limits.Rate == 0 {
		return atOnce
	}
	return min(max(1, s.limits.Rate/10), atOnce)
}

// visitTogether reads the contenders of the directories in as few requests as it can, adds the locks, and returns the
// paths of what is to be visited below.
func (s *scan) visitTogether(ctx context.Context, dirs []Znode) ([]string, error) {
	for i, dir := range dirs {
		if s.queues[dir.Path] {
			dirs[i].Queue = &Znode{Path: dir.Path + kazooQueue}
		}
	}
	locks, err := s.reader.locksOf(ctx, dirs)
	if err != nil {
		return nil, err
	}
	var below []string
	for i, l := range locks {
		if l.isKazooSemaphore() {
			delete(s.queues, dirs[i].Path)
		}
		if l.Kind != "" {
			s.locks = append(s.locks, l)
		} else {
			s.others++
		}
		more, err := s.children(ctx, dirs[i], l)
		if err != nil {
			return nil, err
		}
		below = append(below, more...)
	}
	return below, nil
}

// children returns the paths of the directory's children that may be locks, or have some below. It
// adds the unfair mutexes among them: an epoch is next to each.
func (s *scan) children(ctx context.Context, dir Znode, l Lock) ([]string, error) {
	names := make(map[string]bool, len(dir.Children))
	for _, z := range dir.Children {
		names[z.name()] = true
	}
	var below, unfair []string
	for _, z := range dir.Children {
		name := z.name()
		switch {
		case isPartOf(l, z), zkpath.IsEpoch(name), isSystem(s.reader.client, z.Path):
		case names[zkpath.Epoch(name)]:
			unfair = append(unfair, z.Path)
		default:
			below = append(below, z.Path)
		}
	}
	return s.withoutQueues(below), s.addUnfair(ctx, unfair)
}

// addUnfair adds the unfair mutexes at the paths. An epoch is next to each, so one whose metadata were replaced is
// known, too.
func (s *scan) addUnfair(ctx context.Context, paths []string) error {
	for part := range slices.Chunk(paths, s.together()) {
		znodes, err := s.reader.read(ctx, part)
		if err != nil {
			return err
		}
		for _, path := range part {
			z, ok := znodes[path]
			if !ok {
				continue
			}
			l, ok := Of(z)
			if !ok {
				l = exclusiveAt(z)
			}
			s.locks = append(s.locks, l)
		}
	}
	return nil
}

// withoutQueues returns the paths without those that may be the queue of a semaphore of kazoo among
// them. They are read with the semaphore.
func (s *scan) withoutQueues(paths []string) []string {
	among := make(map[string]bool, len(paths))
	for _, path := range paths {
		among[path] = true
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		of, is := strings.CutSuffix(path, kazooQueue)
		if is = is && among[of]; is {
			s.queues[of] = true
		}
		return is
	})
}

// isPartOf reports whether the child of the lock's directory is a contender's, or was one's name: a
// contender may have left meanwhile.
func isPartOf(l Lock, z Znode) bool {
	switch name := z.name(); {
	case l.Kind == Schedule:
		return !l.Unknown && name == scheduleLock
	case l.Kind == Semaphore && (name == leasesDir || name == turnsDirectory):
		return true
	case l.isKazooSemaphore() && len(name) == kazooID && isKazooName(name):
		return true
	}
	_, ok := queuesOf(Znode{Children: []Znode{z}})
	return ok
}
