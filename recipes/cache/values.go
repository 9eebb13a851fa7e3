package cache

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/membership"
	"github.com/docent-go/docent/recipes/model"
)

// Values is a [Cache] whose data are values of type T. A znode that is no value hides no other: it has
// an error of its own. Each state of a znode is decoded once, so what a value refers to is shared and
// must not be changed. The methods may be called concurrently.
type Values[T any] struct {
	cache  *Cache
	decode func(data []byte) (T, error)

	mu    sync.Mutex // guards following; never held while decode runs
	known map[string]Value[T]
}

// A Value is a znode whose data was decoded, or why it was not.
type Value[T any] struct {
	Path  string
	Value T              // the zero value if Err is not nil
	Err   error          // of the codec; or why the client can't read the znode: see [Snapshot.Unread]
	Stat  framework.Stat // the zero value if the client can't read the znode

	data *byte // the first byte of what was decoded
}

// Of returns the values of the cache, which remains the caller's to close. Of needs no Encode of the
// codec. It panics if c or Decode is nil.
func Of[T any](c *Cache, codec model.Codec[T]) *Values[T] {
	usercall.Require("c", c != nil)
	usercall.Require("codec.Decode", codec.Decode != nil)
	return &Values[T]{cache: c, decode: codec.Decode, known: make(map[string]Value[T])}
}

// Errors of [Cache.Get] and [Values.Get], which are no [framework.ErrNoNode].
var (
	// ErrNotRead is returned if the cache has yet to be filled for the first time: whether there is such a
	// znode is not known.
	ErrNotRead = errtype.New("not read yet", errtype.Other)
	// ErrOutside is returned for a path that is not the cache's: it is neither the path of New nor below it,
	// or deeper than WithDepth.
	ErrOutside = errtype.New("not a path of the cache", errtype.Other)
)

// Get returns the value of the znode at path. Errors: that of the codec, and those of [Cache.Get].
func (v *Values[T]) Get(path string) (T, error) {
	n, err := v.cache.Get(path)
	if err != nil {
		var none T
		return none, err
	}
	found := v.valueOf(n)
	return found.Value, recipe.Error(v.cache.client, "get", path, found.Err)
}

// absence returns the error for a znode that the cache does not have.
func (c *Cache) absence(path string) error {
	extent := c.loop.extent
	if path != extent.root && !strings.HasPrefix(path, below(extent.root)) || extent.depth >= 0 && extent.depthOf(path) > extent.depth {
		return ErrOutside
	}
	if !c.Filled() {
		return ErrNotRead
	}
	return framework.ErrNoNode
}

// All returns the values that the cache has now, as [Values.In] does.
func (v *Values[T]) All() []Value[T] { return v.In(v.cache.Snapshot()) }

// In returns the values of a snapshot, parents before children, in the order of the paths. Znodes that
// the client can't read are among them. Directories are not: znodes without data that the codec can't
// decode, and that have children or are at the cache's own path.
func (v *Values[T]) In(s *Snapshot) []Value[T] {
	usercall.Require("s", s != nil)
	all := make([]Value[T], 0, s.Len())
	for _, n := range s.All() {
		if value := v.valueOf(n); value.Err == nil || !v.isDirectory(s, n) {
			all = append(all, value)
		}
	}
	for path, err := range s.Unread() {
		all = append(all, Value[T]{Path: path, Err: err})
	}
	slices.SortFunc(all, func(a, b Value[T]) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (v *Values[T]) isDirectory(s *Snapshot, n Node) bool {
	if len(n.Data) > 0 {
		return false
	}
	for range s.Children(n.Path) {
		return true
	}
	return n.Path == v.cache.path || n.Stat.NumChildren > 0
}

// Changes returns the values once the cache is ready. Then it returns the latest values whenever one has
// changed. An error is one of [Cache.Snapshots], and comes with the values that the cache has. The
// sequence ends as [Cache.Events] does.
func (v *Values[T]) Changes(ctx context.Context) iter.Seq2[[]Value[T], error] {
	usercall.Require("ctx", ctx != nil)
	return membership.Changes(ctx, v.cache.Snapshots, v.In, sameValues, 0)
}

// sameValues reports whether a and b are the same states of the same znodes.
func sameValues[T any](a, b []Value[T]) bool {
	return slices.EqualFunc(a, b, func(a, b Value[T]) bool {
		return a.Path == b.Path && sameState(a, b) && errors.Is(a.Err, b.Err)
	})
}

// sameState reports whether a and b were decoded from the same state of a znode, for which the cache keeps the
// data that it has.
func sameState[T any](a, b Value[T]) bool {
	return a.Stat.Czxid == b.Stat.Czxid && a.Stat.Mzxid == b.Stat.Mzxid && a.data == b.data
}

// valueOf returns the value of a znode. It decodes a state that it does not know.
func (v *Values[T]) valueOf(n Node) Value[T] {
	value := Value[T]{Path: n.Path, Stat: n.Stat}
	if len(n.Data) > 0 {
		value.data = &n.Data[0]
	}
	v.mu.Lock()
	known, ok := v.known[n.Path]
	v.mu.Unlock()
	if ok && sameState(known, value) {
		known.Stat = n.Stat
		return known
	}
	decoded, err := v.decode(n.Data)
	if value.Err = err; err == nil {
		value.Value = decoded
	}
	v.keep(value)
	return value
}

// keep keeps the value. Now and then it forgets those of znodes that are gone.
func (v *Values[T]) keep(value Value[T]) {
	const least = 64
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known[value.Path] = value
	s := v.cache.Snapshot()
	if len(v.known) <= 2*s.Len()+least {
		return
	}
	for path := range v.known {
		if _, ok := s.Get(path); !ok {
			delete(v.known, path)
		}
	}
}
