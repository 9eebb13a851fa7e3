package zktest

import (
	"errors"
	"slices"
	"sync"
)

// A mesh is the forwarders through which an ensemble's members reach each other:
// from each to each other a link to its quorum port, at which a leader listens
// for followers, and one to its election port.
type mesh struct {
	members []peer // with the ports on which they listen
	links   []meshLink

	mu  sync.Mutex // guards cut
	cut []bool     // by member: all its links hold back
}

// A meshLink is a link with the indexes of the members at its ends.
type meshLink struct {
	*link
	from, to int
	election bool
}

// newMesh returns the mesh between members, in operation. After an error it must
// be closed as well.
func newMesh(members []peer) (*mesh, error) {
	m := &mesh{members: members, cut: make([]bool, len(members))}
	for from := range members {
		for to, peer := range members {
			if from == to {
				continue
			}
			if err := m.add(from, to, peer.quorum, false); err != nil {
				return m, err
			}
			if err := m.add(from, to, peer.election, true); err != nil {
				return m, err
			}
		}
	}
	for _, l := range m.links {
		var greet greeting
		if l.election {
			greet = announce(members[l.from], m.port(l.to, l.from, true))
		}
		l.start(greet)
	}
	return m, nil
}

func (m *mesh) add(from, to, port int, election bool) error {
	l, err := newLink(loopback(port))
	if err != nil {
		return err
	}
	m.links = append(m.links, meshLink{link: l, from: from, to: to, election: election})
	return nil
}

// port returns where a member reaches another one.
func (m *mesh) port(from, to int, election bool) int {
	i := slices.IndexFunc(m.links, func(l meshLink) bool {
		return l.from == from && l.to == to && l.election == election
	})
	return m.links[i].port()
}

// seenBy returns the members with the ports at which one of them reaches the
// others; its own are those on which it listens.
func (m *mesh) seenBy(member int) []peer {
	seen := slices.Clone(m.members)
	for i := range seen {
		if i != member {
			seen[i].quorum = m.port(member, i, false)
			seen[i].election = m.port(member, i, true)
		}
	}
	return seen
}

// setCut cuts a member off or ends that. A link is open when neither of its ends
// is cut off.
func (m *mesh) setCut(member int, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut[member] = cut
	for _, l := range m.links {
		l.setOpen(!m.cut[l.from] && !m.cut[l.to])
	}
}

func (m *mesh) close() error {
	var errs []error
	for _, l := range m.links {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}
