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
	path  string
	scope scope

	number  uint64
	revoked bool
}

// A readList has the znodes that have to be read, in the order in which that became known. A child has its
// place by its parent: see addBelow. One goroutine uses it.
type readList struct {
	early  []*mark          // the oldest marks, the oldest last
	below  []*mark          // of addBelow, ahead of early: not there yet, in no order
	queue  []*mark          // the others, oldest first
	at     map[string]*mark // those that are not revoked
	latest uint64           // the number of the latest mark
}

// last returns the number of the latest mark.
func (m *readList) last() uint64 { return m.latest }

// add marks path. A mark that is there keeps its place.
func (m *readList) add(path string, s scope) {
	if k := m.at[path]; k != nil {
		k.scope = max(k.scope, s)
		return
	}
	m.latest++
	m.queue = append(m.queue, m.mark(path, s, m.latest))
}

// addBelow marks the child at path of a znode that was taken and read. The child takes the place of
// its parent's mark. So whoever waits for the parent waits for the child, and for nothing that became
// known later.
func (m *readList) addBelow(parent *mark, path string, s scope) {
	if k := m.at[path]; k != nil {
		if k.scope = max(k.scope, s); k.number <= parent.number {
			return
		}
		k.revoked, s = true, k.scope
	}
	m.below = append(m.below, m.mark(path, s, parent.number))
}

func (m *readList) mark(path string, s scope, number uint64) *mark {
	if m.at == nil {
		m.at = make(map[string]*mark)
	}
	k := &mark{path: path, scope: s, number: number}
	m.at[path] = k
	return k
}

// revoke takes the mark of path back.
func (m *readList) revoke(path string) {
	if k := m.at[path]; k != nil {
		k.revoked = true
		delete(m.at, path)
	}
}

// take removes the n oldest marks, or all if there are fewer, and returns them.
func (m *readList) take(n int) []*mark {
	var taken []*mark
	for len(taken) < n {
		k := m.oldestMark()
		if k == nil {
			break
		}
		m.drop()
		delete(m.at, k.path)
		taken = append(taken, k)
	}
	return taken
}

// putBack has what was taken be read again, in its place.
func (m *readList) putBack(taken []*mark) {
	for _, k := range slices.Backward(taken) {
		m.at[k.path] = k
		m.early = append(m.early, k)
	}
}

// clear revokes all marks.
func (m *readList) clear() {
	m.early, m.below, m.queue = nil, nil, nil
	clear(m.at)
}

// empty reports whether nothing has to be read.
func (m *readList) empty() bool { return len(m.at) == 0 }

// oldest returns the number of the oldest mark, or one more than the latest if there is none.
func (m *readList) oldest() uint64 {
	if k := m.oldestMark(); k != nil {
		return k.number
	}
	return m.latest + 1
}

// oldestMark returns the oldest mark that is not revoked, nil if there is none.
func (m *readList) oldestMark() *mark {
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

// drop removes the mark that oldestMark returned.
func (m *readList) drop() {
	if n := len(m.early); n > 0 {
		m.early = m.early[:n-1]
		return
	}
	m.queue = m.queue[1:]
}
