package cache

import (
	"cmp"
	"slices"
)

// A scope says how much of a znode has to be read.
type scope int

// The scopes.
const (
	justData  scope = iota // its data
	withNames              // and the names of its children, each of which is new to the cache
	withAll                // and all that is below it
)

// A mark says that a znode has to be read.
type mark struct {
	Path  string
	Scope scope

	number  uint64
	revoked bool
}

// A readList has the znodes that have to be read, in the order in which that became known. A child has its
// place by its parent: see AddBelow. One goroutine uses it.
type readList struct {
	early []*mark          // the oldest marks, the oldest last
	below []*mark          // of AddBelow, ahead of early: not there yet, in no order
	queue []*mark          // the others, oldest first
	at    map[string]*mark // those that are not revoked
	last  uint64           // the number of the latest mark
}

// Last returns the number of the latest mark.
func (m *readList) Last() uint64 { return m.last }

// Add marks path. A mark that is there keeps its place.
func (m *readList) Add(path string, s scope) {
	if k := m.at[path]; k != nil {
		k.Scope = max(k.Scope, s)
		return
	}
	m.last++
	m.queue = append(m.queue, m.mark(path, s, m.last))
}

// AddBelow marks the child at path of a znode that was taken and read. The child takes the place of
// its parent's mark. So whoever waits for the parent waits for the child, and for nothing that became
// known later.
func (m *readList) AddBelow(parent *mark, path string, s scope) {
	if k := m.at[path]; k != nil {
		if k.Scope = max(k.Scope, s); k.number <= parent.number {
			return
		}
		k.revoked, s = true, k.Scope
	}
	m.below = append(m.below, m.mark(path, s, parent.number))
}

func (m *readList) mark(path string, s scope, number uint64) *mark {
	if m.at == nil {
		m.at = make(map[string]*mark)
	}
	k := &mark{Path: path, Scope: s, number: number}
	m.at[path] = k
	return k
}

// Revoke takes the mark of path back.
func (m *readList) Revoke(path string) {
	if k := m.at[path]; k != nil {
		k.revoked = true
		delete(m.at, path)
	}
}

// Take removes the n oldest marks, or all if there are fewer, and returns them.
func (m *readList) Take(n int) []*mark {
	var taken []*mark
	for len(taken) < n {
		k := m.oldest()
		if k == nil {
			break
		}
		m.drop()
		delete(m.at, k.Path)
		taken = append(taken, k)
	}
	return taken
}

// PutBack has what was taken be read again, in its place.
func (m *readList) PutBack(taken []*mark) {
	for _, k := range slices.Backward(taken) {
		m.at[k.Path] = k
		m.early = append(m.early, k)
	}
}

// Clear revokes all marks.
func (m *readList) Clear() {
	m.early, m.below, m.queue = nil, nil, nil
	clear(m.at)
}

// Empty reports whether nothing has to be read.
func (m *readList) Empty() bool { return len(m.at) == 0 }

// Oldest returns the number of the oldest mark, or one more than the latest if there is none.
func (m *readList) Oldest() uint64 {
	if k := m.oldest(); k != nil {
		return k.number
	}
	return m.last + 1
}

// oldest returns the oldest mark that is not revoked, nil if there is none.
func (m *readList) oldest() *mark {
	slices.SortStableFunc(m.below, func(a, b *mark) int { return cmp.Compare(a.number, b.number) })
	for _, k := range slices.Backward(m.below) {
		m.early = append(m.early, k)
	}
	m.below = m.below[:0]
	for {
		var k *mark
		switch {
		case len(m.early) > 0:
			k = m.early[len(m.early)-1]
		case len(m.queue) > 0:
			k = m.queue[0]
		}
		if k == nil || !k.revoked {
			return k
		}
		m.drop()
	}
}

// drop removes the mark that oldest has looked at.
func (m *readList) drop() {
	if n := len(m.early); n > 0 {
		m.early = m.early[:n-1]
		return
	}
	m.queue = m.queue[1:]
}
