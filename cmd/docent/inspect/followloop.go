package inspect

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/cache"
)

// A followLoop has the locks of a copied tree, and brings them up to date. One goroutine uses it.
type followLoop struct {
	locks  map[string]Lock     // by path
	paths  []string            // of locks, in order; nil if locks has other ones by now
	unread map[string][]string // by directory: the paths of its children that can't be read
}

func newFollowLoop() followLoop { return followLoop{locks: make(map[string]Lock)} }

// snapshot returns the locks of the tree, after changes of the znodes at the paths.
func (f *followLoop) snapshot(tree *cache.Snapshot, dirty map[string]struct{}) Snapshot {
	found := Snapshot{At: time.Now(), Unread: unreadOf(tree)}
	for _, path := range f.refuse(found.Unread) {
		dirty[path] = struct{}{}
	}
	for _, path := range slices.Sorted(maps.Keys(directories(dirty))) { // parents first
		f.renew(tree, path)
	}
	if f.paths == nil {
		f.paths = slices.AppendSeq(make([]string, 0, len(f.locks)), maps.Keys(f.locks))
		slices.Sort(f.paths)
	}
	found.Locks = make([]Lock, 0, len(f.locks))
	for _, path := range f.paths {
		found.Locks = append(found.Locks, f.locks[path])
	}
	return found
}

// unreadOf returns what the cache leaves out.
func unreadOf(tree *cache.Snapshot) []Unread {
	var all []Unread
	for path, err := range tree.Unread() {
		all = append(all, Unread{Path: path, Err: err})
	}
	return all
}

// refuse replaces what can't be read, and returns the directories for which that is a change.
func (f *followLoop) refuse(all []Unread) []string {
	before := f.unread
	f.unread = make(map[string][]string)
	for _, u := range all {
		dir, _ := zkpath.Split(u.Path)
		f.unread[dir] = append(f.unread[dir], u.Path)
	}
	var changed []string
	for dir, paths := range f.unread {
		if !slices.Equal(paths, before[dir]) {
			changed = append(changed, dir)
		}
	}
	for dir := range before {
		if f.unread[dir] == nil {
			changed = append(changed, dir)
		}
	}
	return changed
}

// directories returns the paths, with the directory of a semaphore instead of those of its queue and its
// permits.
func directories(paths map[string]struct{}) map[string]struct{} {
	found := make(map[string]struct{}, len(paths))
	for path := range paths {
		dir, name := zkpath.Split(path)
		if name == leasesDir || name == turnsDirectory {
			path = dir
		}
		path = strings.TrimSuffix(path, kazooQueue)
		found[path] = struct{}{}
	}
	return found
}

// renew reads the lock at path again, and those that may be part of it: a schedule's lock, and the two directories
// that a semaphore would have.
func (f *followLoop) renew(tree *cache.Snapshot, path string) {
	l := f.lockAt(tree, path)
	f.set(path, l)
	holder := zkpath.Join(path, scheduleLock)
	f.set(holder, f.lockAt(tree, holder))
	for _, part := range []struct {
		path string
		ofL  bool
	}{
		{zkpath.Join(path, leasesDir), l.Kind == Semaphore},
		{zkpath.Join(path, turnsDirectory), l.Kind == Semaphore},
		{path + kazooQueue, l.isKazooSemaphore()},
	} {
		below := Lock{}
		if !part.ofL {
			below = f.lockAt(tree, part.path)
		}
		f.set(part.path, below)
	}
}

// set replaces the lock at path, which has no kind if there is none.
func (f *followLoop) set(path string, l Lock) {
	if _, known := f.locks[path]; known != (l.Kind != "") {
		f.paths = nil
	}
	if l.Kind == "" {
		delete(f.locks, path)
		return
	}
	f.locks[path] = l
}

// lockAt returns the lock at path, without a kind if there is none.
func (f *followLoop) lockAt(tree *cache.Snapshot, path string) Lock {
	node, ok := tree.Get(path)
	if !ok || f.isContender(path) {
		return Lock{}
	}
	z := f.znode(tree, node, true)
	if queue, ok := tree.Get(path + kazooQueue); ok {
		found := f.znode(tree, queue, true)
		z.Queue = &found
	}
	if l, ok := Of(z); ok {
		return l
	}
	// An unfair mutex whose metadata were replaced: its epoch shows it.
	if _, ok := tree.Get(zkpath.Epoch(path)); ok && z.Stat.EphemeralOwner != 0 && len(z.Children) == 0 {
		return exclusiveAt(z)
	}
	return Lock{}
}

// isContender reports whether the znode at path is a contender's, of a lock that is known.
func (f *followLoop) isContender(path string) bool {
	dir, name := zkpath.Split(path)
	if l, ok := f.locks[dir]; ok && isPartOf(l, Znode{Path: path}) {
		return true
	}
	above, part := zkpath.Split(dir)
	if part != leasesDir && part != turnsDirectory {
		return false
	}
	l, ok := f.locks[above]
	return ok && l.Kind == Semaphore && strings.Contains(name, "-")
}

// znode returns a copied znode with its children, and with those of a semaphore's two directories. Of
// children that can't be read it has the paths.
func (f *followLoop) znode(tree *cache.Snapshot, node cache.Node, below bool) Znode {
	z := Znode{Path: node.Path, Data: node.Data, Stat: node.Stat}
	if !below {
		return z
	}
	for name, child := range tree.Children(node.Path) {
		z.Children = append(z.Children, f.znode(tree, child, name == leasesDir || name == turnsDirectory))
	}
	for _, path := range f.unread[node.Path] {
		z.Children = append(z.Children, Znode{Path: path})
	}
	return z
}
