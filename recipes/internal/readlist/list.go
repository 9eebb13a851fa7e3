// Package readlist has the znodes that a cache has to read.
package readlist

import "slices"

// A Scope says how much of a znode has to be read.
type Scope int

// The scopes.
const (
	JustData  Scope = iota // its data
	WithNames              // and the names of its children, each of which is new to the cache
	WithAll                // and all that is below it
)

// A Mark says that a znode has to be read.
type Mark struct {
	Path  string
	Scope Scope

	number  uint64
	revoked bool
}

// A List has the znodes that have to be read, in the order in which that became known. One goroutine
// uses it.
type List struct {
	queue []*Mark
	at    map[string]*Mark // those of queue that are not revoked
	last  uint64           // the number of the latest mark
	deep  int              // how many of at are WithAll
}

// Last returns the number of the latest mark.
func (m *List) Last() uint64 { return m.last }

// Deep reports whether something has to be read with all that is below it.
func (m *List) Deep() bool { return m.deep > 0 }

// Add marks path. A mark that is there keeps its place.
func (m *List) Add(path string, s Scope) {
	if m.at == nil {
		m.at = make(map[string]*Mark)
	}
	k := m.at[path]
	if k == nil {
		m.last++
		k = &Mark{Path: path, number: m.last}
		m.at[path] = k
		m.queue = append(m.queue, k)
	}
	if s == WithAll && k.Scope != WithAll {
		m.deep++
	}
	k.Scope = max(k.Scope, s)
}

// Revoke takes the mark of path back.
func (m *List) Revoke(path string) {
	if k := m.at[path]; k != nil {
		k.revoked = true
		m.forget(k)
	}
}

// Take removes the n oldest marks, or all if there are fewer, and returns them.
func (m *List) Take(n int) []*Mark {
	var taken []*Mark
	for len(m.queue) > 0 && len(taken) < n {
		k := m.queue[0]
		m.queue = m.queue[1:]
		if !k.revoked {
			m.forget(k)
			taken = append(taken, k)
		}
	}
	return taken
}

// PutBack has what was taken be read again, in its place.
func (m *List) PutBack(taken []*Mark) {
	for _, k := range taken {
		m.at[k.Path] = k
		if k.Scope == WithAll {
			m.deep++
		}
	}
	m.queue = append(slices.Clip(taken), m.queue...)
}

func (m *List) forget(k *Mark) {
	delete(m.at, k.Path)
	if k.Scope == WithAll {
		m.deep--
	}
}

// Clear revokes all marks.
func (m *List) Clear() {
	m.queue, m.deep = nil, 0
	clear(m.at)
}

// Empty reports whether nothing has to be read.
func (m *List) Empty() bool { return len(m.at) == 0 }

// Oldest returns the number of the oldest mark, or one more than the latest if there is none.
func (m *List) Oldest() uint64 {
	for len(m.queue) > 0 && m.queue[0].revoked {
		m.queue = m.queue[1:]
	}
	if len(m.queue) == 0 {
		return m.last + 1
	}
	return m.queue[0].number
}
