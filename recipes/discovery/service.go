package discovery

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/settle"
)

// A Service is the instances of one service, kept in memory. Its methods may be called concurrently.
type Service[T any] struct {
	registry *Registry[T]
	path     string
	cache    *cache.Cache

	mu    sync.Mutex         // guards following; never held across a callback
	known map[string]read[T] // what the last snapshot had, by the names of its znodes
}

// A read is a state of a znode, and the instance that it has.
type read[T any] struct {
	in   Instance[T]
	err  error // why the znode is no instance
	node cache.Node
}

// Ready waits until the instances have been read, or ctx ends: then the error wraps ctx's. It is
// otherwise as [cache.Cache.Ready].
func (s *Service[T]) Ready(ctx context.Context) error {
	return recipe.CallError(ctx, "ready", s.path, s.cache.Ready(cause.Inside(ctx)))
}

// Instances returns the instances in the order of their znodes; disabled ones are among them. Before
// [Service.Ready] it returns what is known. During an outage it returns the last list: see
// [Service.Stale]. Maps and slices in payloads and URIs are shared and must not be changed.
func (s *Service[T]) Instances() []Instance[T] {
	return instancesOf(s.read(s.cache.Snapshot()))
}

// Changes returns the instances at once when they have been read, and again after each change, the
// latest list alone. During an outage there are no changes. The sequence ends with ctx, when the
// Service, its Registry or its client is closed, or when the loop over it is left.
func (s *Service[T]) Changes(ctx context.Context) iter.Seq[[]Instance[T]] {
	return func(yield func([]Instance[T]) bool) {
		for all := range settle.Changes(ctx, s.latest, sameStates, 0) {
			if !yield(instancesOf(all)) {
				return
			}
		}
	}
}

// latest returns the instances of each snapshot.
func (s *Service[T]) latest(ctx context.Context) iter.Seq[[]read[T]] {
	return func(yield func([]read[T]) bool) {
		for snapshot := range s.cache.Snapshots(ctx) {
			if !yield(s.read(snapshot)) {
				return
			}
		}
	}
}

// Stale returns since when the instances may be behind the ensemble, and whether they may: see
// [cache.Cache.Stale].
func (s *Service[T]) Stale() (since time.Time, stale bool) { return s.cache.Stale() }

// Close ends the Service: see [cache.Cache.Close]. It deletes nothing.
func (s *Service[T]) Close() error {
	err := s.cache.Close()
	s.registry.mu.Lock()
	delete(s.registry.watched, s.cache)
	s.registry.mu.Unlock()
	return recipe.Error("close", s.path, err)
}

// read returns the instances of the snapshot. It decodes znodes that have changed since the last call.
func (s *Service[T]) read(snapshot *cache.Snapshot) []read[T] {
	all, unreadable := s.decode(snapshot)
	for _, r := range unreadable {
		s.registry.reporter.report(r.node.Path, r.node.Stat, r.err)
	}
	return all
}

func (s *Service[T]) decode(snapshot *cache.Snapshot) (all, unreadable []read[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[string]read[T])
	for name, n := range snapshot.Children(s.path) {
		r, ok := s.known[name]
		if !ok || !sameNode(r.node, n) {
			r = read[T]{node: n}
			r.in, r.err = decode[T](n.Data)
			if r.err != nil {
				unreadable = append(unreadable, r)
			}
		}
		if known[name] = r; r.err == nil {
			all = append(all, r)
		}
	}
	s.known = known
	return all, unreadable
}

func sameStates[T any](a, b []read[T]) bool {
	return slices.EqualFunc(a, b, func(a, b read[T]) bool { return sameNode(a.node, b.node) })
}

// sameNode reports whether a and b are one state of one znode.
func sameNode(a, b cache.Node) bool {
	return a.Path == b.Path && a.Stat.Czxid == b.Stat.Czxid && a.Stat.Mzxid == b.Stat.Mzxid
}

func instancesOf[T any](all []read[T]) []Instance[T] {
	instances := make([]Instance[T], len(all))
	for i, r := range all {
		instances[i] = r.in
	}
	return instances
}
