package treesource

import (
	"context"
	"errors"
	"sync"

	"github.com/docent-go/docent/framework"
)

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

// WatchEach is the Opener for servers without recursive watches. Until its first Read the Source is not
// valid.
func WatchEach(_ context.Context, c *framework.Client, path string) (Source, error) {
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
