package cache

import (
	"context"
	"errors"
	"sync"

	"github.com/docent-go/docent/framework"
)

// A source notifies a cache of changes and reads for it. One goroutine calls it, save that any
// goroutine may call Valid.
type source interface {
	// Next returns the next changes, as framework.TreeWatch does. If ctx has ended, it returns
	// those that are there, if any.
	Next(ctx context.Context) ([]framework.Change, error)

	// Valid reports whether no connection has been lost that Next has yet to report.
	Valid() bool

	// Follows reports whether Next notifies, or has notified, of the deletion of the znode as it was
	// read last.
	Follows(path string) bool

	// Read reads the znodes. Changes after that are notified of.
	Read(ctx context.Context, paths []string) ([]framework.Read, []error)

	// List lists the children of the znodes. Creations after that are notified of.
	List(ctx context.Context, paths []string) ([][]string, []error)

	// Lists reports whether a znode, as read, has to be listed to know its children.
	Lists(stat *framework.Stat) bool

	Close()
}

// A statLister is a source that needs no read of a znode's data to follow its changes.
type statLister interface {
	// ListWithStat lists the children of the znodes, and reads their Stats.
	ListWithStat(ctx context.Context, paths []string) ([][]string, []framework.Stat, []error)
}

// An opener makes a source of the part of the tree at path.
type opener func(ctx context.Context, c *framework.Client, path string) (source, error)

// A want says what to read of a znode.
type want struct {
	path  string
	list  bool  // its children, too, if the source says that they have to be listed
	known int64 // the Czxid of a znode whose children need no listing; noCzxid for none

	// Data reports by the Stat whether the data are to be read. If it is nil, they are.
	data func(stat *framework.Stat) bool
}

// noCzxid is no znode's Czxid. That of "/" is 0.
const noCzxid = -1

// A reading is what was found of a znode.
type reading struct {
	read    *framework.Read // nil if there is no znode, or it can't be read
	refusal error           // why it can't be read
	listed  bool            // names were asked for
	names   []string        // of its children
}

// look reads the znodes, and lists those that have to be listed. It returns an error if the ensemble
// did not answer.
func look(ctx context.Context, s source, wants []want) ([]reading, error) {
	l := lookEach{source: s, wants: wants, sights: make([]reading, len(wants))}
	var toList, toRead []int
	lister, can := s.(statLister)
	for i, w := range wants {
		if can && w.data != nil {
			toList = append(toList, i)
		} else {
			toRead = append(toRead, i)
		}
	}
	if len(toList) > 0 {
		withData, err := l.listWithStat(ctx, lister, toList)
		if err != nil {
			return nil, err
		}
		toRead = append(toRead, withData...)
	}
	inner, err := l.read(ctx, toRead)
	if err != nil {
		return nil, err
	}
	return l.sights, l.list(ctx, inner)
}

// A lookEach fills sights, one for each want.
type lookEach struct {
	source
	wants  []want
	sights []reading
}

func (l *lookEach) paths(at []int) []string {
	paths := make([]string, len(at))
	for i, k := range at {
		paths[i] = l.wants[k].path
	}
	return paths
}

// refuse notes why the znode could not be read. It returns an error that concerns all znodes.
func (l *lookEach) refuse(at int, err error) error {
	switch {
	case errors.Is(err, framework.ErrNoNode):
		l.sights[at] = reading{}
	case unreadable(err):
		l.sights[at] = reading{refusal: err}
	default:
		return err
	}
	return nil
}

// listWithStat lists the znodes, and returns those whose data are to be read.
func (l *lookEach) listWithStat(ctx context.Context, s statLister, at []int) ([]int, error) {
	var withData []int
	names, stats, errs := s.ListWithStat(ctx, l.paths(at))
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil {
				return nil, err
			}
			continue
		}
		l.sights[k].read = &framework.Read{Stat: stats[i]}
		if l.wants[k].list {
			l.sights[k].listed, l.sights[k].names = true, names[i]
		}
		if l.wants[k].data(&stats[i]) {
			withData = append(withData, k)
		}
	}
	return withData, nil
}

// read reads the znodes, and returns those that have to be listed.
func (l *lookEach) read(ctx context.Context, at []int) ([]int, error) {
	if len(at) == 0 {
		return nil, nil
	}
	var inner []int
	reads, errs := l.Read(ctx, l.paths(at))
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil {
				return nil, err
			}
			continue
		}
		w, sight, stat := l.wants[k], &l.sights[k], &reads[i].Stat
		if sight.read != nil && sight.read.Stat.Czxid != stat.Czxid { // created again since it was listed
			*sight = reading{}
		}
		if sight.read = &reads[i]; w.list && !sight.listed && stat.Czxid != w.known && l.Lists(stat) {
			inner = append(inner, k)
		}
	}
	return inner, nil
}

// list lists the znodes of at.
func (l *lookEach) list(ctx context.Context, at []int) error {
	if len(at) == 0 {
		return nil
	}
	names, errs := l.List(ctx, l.paths(at))
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil { // it may have been deleted since it was read
				return err
			}
			continue
		}
		l.sights[k].listed, l.sights[k].names = true, names[i]
	}
	return nil
}

// unwatched reports whether a read that failed with err leaves the znode without a watch of its data.
func unwatched(err error) bool { return errors.Is(err, framework.ErrNoNode) || unreadable(err) }

// unreadable reports whether err will come again until the znode is another, or its ACL.
func unreadable(err error) bool {
	return errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) || errors.Is(err, framework.ErrNotGzip)
}

// An eachSource keeps two watches for each znode, on servers without recursive watches. A watch
// fires once: Read and List set it again.
type eachSource struct {
	client *framework.Client
	path   string
	fired  chan struct{} // capacity 1: a watch has fired

	mu      sync.Mutex // guards following; never held across a request
	watches map[watchKey]*framework.Watch
	begun   bool // a watch was set, and none was lost since; all may have fired
	missed  bool // a watch was lost that is not in watches any more
	refused bool // the path may neither be read nor watched: a watch of it is missing, and known to be
}

type watchKey struct {
	path string
	kind framework.WatchKind
}

// watchEach is the opener for servers without recursive watches. Until its first Read the source is not
// valid.
func watchEach(_ context.Context, c *framework.Client, path string) (source, error) {
	return &eachSource{
		client: c, path: path,
		fired: make(chan struct{}, 1), watches: make(map[watchKey]*framework.Watch),
	}, nil
}

func (s *eachSource) Next(ctx context.Context) ([]framework.Change, error) {
	for {
		if changes := s.sweep(); len(changes) > 0 {
			return changes, nil
		}
		select {
		case <-s.fired:
		case <-ctx.Done():
			return s.sweep(), ctx.Err()
		}
	}
}

// sweep removes the watches that have fired and returns what they notify of. Watches of two znodes
// fire in no order, and nothing else notifies of a znode that was created again. So a deletion is also
// a change, which has the path read.
func (s *eachSource) sweep() []framework.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []framework.Change
	for key, w := range s.watches {
		switch event := w.Event(); {
		case event == 0:
		case lost(event):
			s.missed = true
		default:
			kind := framework.EventChanged
			if key.kind == framework.WatchChildren && event != framework.EventDeleted {
				kind = framework.EventChildrenChanged
			}
			if event == framework.EventDeleted && key.kind != framework.WatchChildren {
				changes = append(changes, framework.Change{Path: key.path, Kind: framework.EventDeleted})
			}
			changes = append(changes, framework.Change{Path: key.path, Kind: kind})
			delete(s.watches, key)
		}
	}
	if s.missed {
		s.missed = false
		s.closeLocked()
		return []framework.Change{{Path: s.path, Kind: framework.EventUnseen}}
	}
	return changes
}

// lost reports whether changes may have been missed.
func lost(event framework.EventKind) bool {
	return event >= framework.EventReconnected
}

func (s *eachSource) Valid() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if !w.Valid() && (w.Event() == 0 || lost(w.Event())) {
			return false
		}
	}
	return (s.begun || s.refused) && !s.missed
}

// Follows is false if the watch of the znode's data has fired: after a change no watch notifies of a
// deletion, until the znode is read again.
func (s *eachSource) Follows(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[watchKey{path, framework.WatchData}]
	return w != nil && w.Event() == 0
}

func (s *eachSource) Read(ctx context.Context, paths []string) ([]framework.Read, []error) {
	reads := make([]framework.Read, len(paths))
	watches, errs := s.watch(ctx, framework.WatchData, paths)
	for i, w := range watches {
		if w == nil && paths[i] == s.path && unwatched(errs[i]) {
			w, errs[i] = s.watchRoot(ctx, errs[i])
		}
		if w == nil {
			continue
		}
		if reads[i].Data = w.Data(); paths[i] == s.path {
			s.setRefused(false)
		}
		reads[i].Stat, _ = w.Stat()
	}
	return reads, errs
}

// watchRoot watches the path that could not be read because of err: nothing else notifies of its
// creation. It returns the watch of its data if it can be read after all.
func (s *eachSource) watchRoot(ctx context.Context, err error) (*framework.Watch, error) {
	for {
		watches, errs := s.watch(ctx, framework.WatchExists, []string{s.path})
		s.setRefused(errors.Is(errs[0], framework.ErrNoAuth)) // since ZooKeeper 3.9
		if errs[0] != nil {
			return nil, errs[0]
		}
		_, exists := watches[0].Stat()
		switch {
		case !exists:
			return nil, framework.ErrNoNode
		case !errors.Is(err, framework.ErrNoNode):
			return nil, err // the watch fires when the znode changes
		}
		// It was created between the two requests.
		if watches, errs = s.watch(ctx, framework.WatchData, []string{s.path}); errs[0] == nil || !unwatched(errs[0]) {
			return watches[0], errs[0]
		}
		err = errs[0]
	}
}

func (s *eachSource) setRefused(refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = refused
}

func (s *eachSource) List(ctx context.Context, paths []string) ([][]string, []error) {
	names := make([][]string, len(paths))
	watches, errs := s.watch(ctx, framework.WatchChildren, paths)
	for i, w := range watches {
		switch {
		case w == nil:
		case s.recreated(paths[i], w):
			errs[i] = framework.ErrNoNode // what was read; the watch of its data notifies of the other
		default:
			names[i] = w.Children()
		}
	}
	return names, errs
}

// recreated reports whether a listing is of another znode than the one whose data were read.
func (s *eachSource) recreated(path string, listed *framework.Watch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	read := s.watches[watchKey{path, framework.WatchData}]
	if read == nil {
		return false
	}
	was, _ := read.Stat()
	now, _ := listed.Stat()
	return was.Czxid != now.Czxid
}

// Lists is true also for a znode without children, whose first one no other watch tells of.
func (s *eachSource) Lists(stat *framework.Stat) bool { return stat.EphemeralOwner == 0 }

func (s *eachSource) watch(
	ctx context.Context, kind framework.WatchKind, paths []string,
) ([]*framework.Watch, []error) {
	watches, errs := s.client.WatchEach(ctx, kind, paths...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range watches {
		if w == nil {
			continue
		}
		key := watchKey{paths[i], kind}
		s.dropLocked(key)
		if s.watches[key] = w; kind == framework.WatchData {
			s.dropLocked(watchKey{paths[i], framework.WatchExists}) // older: it may yet notify of another znode
		}
		s.begun = true
		w.AfterFire(s.poke)
	}
	return watches, errs
}

// dropLocked ends a watch that a later read makes superfluous.
func (s *eachSource) dropLocked(key watchKey) {
	if old := s.watches[key]; old != nil {
		s.missed = s.missed || lost(old.Event())
		old.Close()
		delete(s.watches, key)
	}
}

func (s *eachSource) poke() {
	select {
	case s.fired <- struct{}{}:
	default: // Next has yet to look, and will see this too
	}
}

// Close ends the interest. The server keeps each watch until it fires.
func (s *eachSource) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
}

func (s *eachSource) closeLocked() {
	for _, w := range s.watches {
		w.Close()
	}
	clear(s.watches)
	s.begun = false
}

// A treeSource is one recursive watch.
type treeSource struct {
	*framework.TreeWatch
	client *framework.Client
}

// watchTree is the opener for servers that have recursive watches. It returns the source for others if
// this one has none.
func watchTree(ctx context.Context, c *framework.Client, path string) (source, error) {
	w, err := c.WatchTree(ctx, path)
	if errors.Is(err, framework.ErrUnsupported) {
		return watchEach(ctx, c, path)
	}
	if err != nil {
		return nil, err
	}
	return treeSource{w, c}, nil
}

func (s treeSource) Read(ctx context.Context, paths []string) ([]framework.Read, []error) {
	return s.client.GetEach(ctx, paths...)
}

func (s treeSource) List(ctx context.Context, paths []string) ([][]string, []error) {
	names, _, errs := s.client.ChildrenEach(ctx, paths...)
	return names, errs
}

func (s treeSource) ListWithStat(ctx context.Context, paths []string) ([][]string, []framework.Stat, []error) {
	return s.client.ChildrenEach(ctx, paths...)
}

// Follows is true, because a deletion has an event of its own.
func (s treeSource) Follows(string) bool { return true }

// Lists is for children from before the watch: it notifies of others.
func (s treeSource) Lists(stat *framework.Stat) bool { return stat.NumChildren > 0 }
