package reading

import (
	"iter"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
)

// A Znode is a znode as a cache has it.
type Znode = struct {
	Path string
	Data []byte
	Stat framework.Stat
}

// A Value is a state of a znode, decoded.
type Value[T any] struct {
	Of           T
	path         string
	czxid, mzxid int64
	err          error
}

// A List has the values of a directory's znodes. Its methods may be called concurrently.
type List[T any] struct {
	Reader *Reader[T]

	mu    sync.Mutex // guards following; not held during a report
	known map[string]Value[T]
}

// Values returns the values of the znodes, which are all of the directory. It decodes those that have
// changed since the last call, leaves out those that it can't decode, and reports them.
func (l *List[T]) Values(znodes iter.Seq[Znode]) []Value[T] {
	all, refused := l.decode(znodes)
	for _, v := range refused {
		l.Reader.refuse(v.path, v.mzxid, v.err)
	}
	return all
}

func (l *List[T]) decode(znodes iter.Seq[Znode]) (all, refused []Value[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := make(map[string]Value[T], len(l.known))
	for n := range znodes {
		v, ok := l.known[n.Path]
		if !ok || v.czxid != n.Stat.Czxid || v.mzxid != n.Stat.Mzxid {
			v = Value[T]{path: n.Path, czxid: n.Stat.Czxid, mzxid: n.Stat.Mzxid}
			if v.Of, v.err = l.Reader.Decode(n.Data); v.err != nil {
				refused = append(refused, v)
			}
		}
		if known[n.Path] = v; v.err == nil {
			all = append(all, v)
		}
	}
	l.known = known
	return all, refused
}

// Same reports whether a and b are the same states of the same znodes.
func Same[T any](a, b []Value[T]) bool {
	return slices.EqualFunc(a, b, func(a, b Value[T]) bool {
		return a.path == b.path && a.czxid == b.czxid && a.mzxid == b.mzxid
	})
}
