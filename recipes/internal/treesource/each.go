package treesource

import (
	"context"
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
	missed  bool // a watch was lost that is not in watches any more
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

// sweep removes the watches that have fired and returns what they notify of. A deletion is a change
// like others, which a read tells, because watches of two znodes fire in no order.
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
	return len(s.watches) > 0 && !s.missed
}

func (s *eachSource) Read(ctx context.Context, paths []string) ([]framework.Read, []error) {
	reads := make([]framework.Read, len(paths))
	watches, errs := s.watch(ctx, framework.WatchData, paths)
	for i, w := range watches {
		switch {
		case w != nil:
			reads[i].Data = w.Data()
			reads[i].Stat, _ = w.Stat()
		case paths[i] == s.path && ctx.Err() == nil: // nothing else tells of its creation
			if _, faults := s.watch(ctx, framework.WatchExists, paths[i:i+1]); faults[0] != nil {
				errs[i] = faults[0]
			}
		}
	}
	return reads, errs
}

func (s *eachSource) List(ctx context.Context, paths []string) ([][]string, []error) {
	names := make([][]string, len(paths))
	watches, errs := s.watch(ctx, framework.WatchChildren, paths)
	for i, w := range watches {
		if w != nil {
			names[i] = w.Children()
		}
	}
	return names, errs
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
		if old := s.watches[key]; old != nil {
			s.missed = s.missed || lost(old.Event())
			old.Close()
		}
		s.watches[key] = w
		w.AfterFire(s.poke)
	}
	return watches, errs
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
}
