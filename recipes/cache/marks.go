package cache

import "slices"

// A scope says how much of a znode has to be looked at.
type scope int

const (
	justData  scope = iota // its data
	withNames              // and the names of its children, each of which is new to the cache
	withAll                // and all that is below it
)

// A mark says that a znode has to be read.
type mark struct {
	path    string
	scope   scope
	number  uint64
	revoked bool
}

// marks are the znodes that have to be read, in the order in which that became known.
type marks struct {
	queue []*mark
	at    map[string]*mark // those of queue that are not revoked
	last  uint64           // the number of the latest mark
	deep  int              // how many of at are withAll
}

// add marks path. A mark that is there keeps its place.
func (m *marks) add(path string, s scope) {
	if m.at == nil {
		m.at = make(map[string]*mark)
	}
	k := m.at[path]
	if k == nil {
		m.last++
		k = &mark{path: path, number: m.last}
		m.at[path] = k
		m.queue = append(m.queue, k)
	}
	if s == withAll && k.scope != withAll {
		m.deep++
	}
	k.scope = max(k.scope, s)
}

// revoke takes the mark of path back.
func (m *marks) revoke(path string) {
	if k := m.at[path]; k != nil {
		k.revoked = true
		m.forget(k)
	}
}

// take removes the n oldest marks, or all if there are fewer, and returns them.
func (m *marks) take(n int) []*mark {
	var taken []*mark
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

// putBack has what was taken be read again, in its place.
func (m *marks) putBack(taken []*mark) {
	for _, k := range taken {
		m.at[k.path] = k
		if k.scope == withAll {
			m.deep++
		}
	}
	m.queue = append(slices.Clip(taken), m.queue...)
}

func (m *marks) forget(k *mark) {
	delete(m.at, k.path)
	if k.scope == withAll {
		m.deep--
	}
}

// clear revokes all marks.
func (m *marks) clear() {
	m.queue, m.deep = nil, 0
	clear(m.at)
}

// empty reports whether nothing has to be read.
func (m *marks) empty() bool { return len(m.at) == 0 }

// oldest returns the number of the oldest mark, or one more than the latest if there is none.
func (m *marks) oldest() uint64 {
	for len(m.queue) > 0 && m.queue[0].revoked {
		m.queue = m.queue[1:]
	}
	if len(m.queue) == 0 {
		return m.last + 1
	}
	return m.queue[0].number
}
