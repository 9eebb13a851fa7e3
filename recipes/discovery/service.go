package discovery

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/membership"
)

// A Service is the instances of one service, kept in memory. Its methods may be called concurrently.
type Service[T any] struct {
	client *framework.Client
	path   string
	cache  watched
	values *cache.Values[Instance[T]]
	reader *reader[Instance[T]]
}

// A state is a state of a znode, decoded.
type state[T any] struct {
	cache.Value[Instance[T]]
	data []byte // of the znode
}

// A watched is the cache of a Service, as the Registry closes it.
type watched struct{ *cache.Cache }

// Close closes the cache, which bounds its waits by itself.
func (w watched) Close(context.Context) error { return w.Cache.Close() }

// Ready waits until the instances have been read, or ctx ends: then the error wraps ctx's. It is
// otherwise as [cache.Cache.Ready].
func (s *Service[T]) Ready(ctx context.Context) error {
	return recipe.CallError(ctx, s.client, "ready", s.path, s.cache.Ready(ctx))
}

// Instances returns the instances in the order of their znodes; disabled ones are among them. Before
// [Service.Ready] it returns what is known. During an outage it returns the last list: see
// [Service.Stale]. Maps and slices in payloads and URIs are shared and must not be changed.
func (s *Service[T]) Instances() []Instance[T] {
	return instancesOf(s.read(s.cache.Snapshot()))
}

// Changes returns the instances at once when they have been read, and again after each change, the
// latest list alone. During an outage there are no changes. While the client may not read the service,
// the error says so, once for each reason and with the last list; the next element without an error
// follows when the service can be read again. The sequence ends with ctx, when the Service, its Registry
// or its client is closed, or when the loop over it is left.
func (s *Service[T]) Changes(ctx context.Context) iter.Seq2[[]Instance[T], error] {
	return func(yield func([]Instance[T], error) bool) {
		for all, err := range membership.Changes(ctx, s.cache.Snapshots, s.read, same, 0) {
			if !yield(instancesOf(all), err) {
				return
			}
		}
	}
}

// Path returns the path of the directory of the service's instances.
func (s *Service[T]) Path() string { return s.path }

// AbsolutePath returns the path of that directory in the ensemble, with chroot and namespace.
func (s *Service[T]) AbsolutePath() string { return s.client.AbsolutePath(s.path) }

// Stale returns since when the instances may be behind the ensemble, and whether they may: see
// [cache.Cache.Stale].
func (s *Service[T]) Stale() (since time.Time, stale bool) { return s.cache.Stale() }

// Filled reports whether the instances have been read: see [cache.Cache.Filled]. Until then no instance means nothing.
func (s *Service[T]) Filled() bool { return s.cache.Filled() }

// Close ends the Service: see [cache.Cache.Close]. It deletes nothing.
func (s *Service[T]) Close() error {
	return recipe.Error(s.client, "close", s.path, s.cache.Cache.Close())
}

// read returns the instances of the snapshot, and reports the znodes that are none.
func (s *Service[T]) read(snapshot *cache.Snapshot) (all []state[T]) {
	var refusals []refusal
	for _, v := range s.values.In(snapshot) {
		switch {
		case v.Path == s.path: // the directory
		case v.Err != nil:
			refusals = append(refusals, refusal{v.Path, v.Stat.Mzxid, v.Err})
		default:
			n, _ := snapshot.Get(v.Path)
			all = append(all, state[T]{v, n.Data})
		}
	}
	s.reader.refuse(s.path, refusals)
	return all
}

// same reports whether a and b are the same states of the same znodes. After a restore of the ensemble one Mzxid may be
// that of two states.
func same[T any](a, b []state[T]) bool {
	return slices.EqualFunc(a, b, func(a, b state[T]) bool {
		return a.Path == b.Path && a.Stat.Czxid == b.Stat.Czxid && a.Stat.Mzxid == b.Stat.Mzxid && bytes.Equal(a.data, b.data)
	})
}

func instancesOf[T any](all []state[T]) []Instance[T] {
	instances := make([]Instance[T], len(all))
	for i, v := range all {
		instances[i] = v.Value.Value
	}
	return instances
}
