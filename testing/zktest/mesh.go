package zktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/testing/internal/gate"
)

// A mesh is the network of an ensemble whose members all are on the loopback interface. It
// consists of forwarders. Each member has two links to each other member: one to its quorum port,
// at which a leader listens for followers, and one to its election port.
type mesh struct {
	clients []int  // ports
	members []peer // with the ports on which they listen
	links   []meshLink
	gates   [][]*gate.Gate // by the indexes of who sends and who receives; shared by their links
}

// A meshLink is a link with the indexes of the members at its ends.
type meshLink struct {
	*link
	from, to int
	election bool
}

// newMesh returns the mesh between n members, in operation.
func newMesh(n int) (*mesh, error) {
	ports, err := freeport.Draw(3 * n)
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	m := &mesh{clients: ports[:n], members: make([]peer, n), gates: make([][]*gate.Gate, n)}
	for i := range m.members {
		m.members[i] = peer{id: i + 1, host: localhost, quorum: ports[n+i], election: ports[2*n+i]}
		for range m.members {
			m.gates[i] = append(m.gates[i], gate.New())
		}
	}
	if err := m.connect(); err != nil {
		return nil, errors.Join(fmt.Errorf("zktest: %w", err), m.close())
	}
	return m, nil
}

// connect makes all links and starts them.
func (m *mesh) connect() error {
	for from := range m.members {
		for to, peer := range m.members {
			if from == to {
				continue
			}
			if err := m.add(from, to, peer.quorum, false); err != nil {
				return err
			}
			if err := m.add(from, to, peer.election, true); err != nil {
				return err
			}
		}
	}
	for _, l := range m.links {
		var greet handshake
		if l.election {
			greet = announce(m.members[l.from], m.port(l.to, l.from, true))
		}
		l.start(greet)
	}
	return nil
}

func (m *mesh) add(from, to, port int, election bool) error {
	l, err := newLink(loopback(port), m.gates[from][to], m.gates[to][from])
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

// place gives a member the forwarders' ports for the others' and, for itself, those
// on which it listens.
func (m *mesh) place(member int) place {
	seen := slices.Clone(m.members)
	for i := range seen {
		if i != member {
			seen[i].quorum = m.port(member, i, false)
			seen[i].election = m.port(member, i, true)
		}
	}
	return place{host: localhost, port: m.clients[member], peers: seen}
}

// set can't cut clients off, which don't come by a forwarder.
func (m *mesh) set(c cuts) error {
	if slices.Contains(c.clients, true) {
		return fmt.Errorf("%w: clients reach the members directly", ErrNoNamespaces)
	}
	for from, gates := range m.gates {
		for to, g := range gates {
			g.Set(!c.drop(from, to))
		}
	}
	return nil
}

func (m *mesh) close() error {
	var errs []error
	for _, l := range m.links {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

// maxAddress bounds the address in an election's greeting.
const maxAddress = 1 << 10

// announce returns the greeting for a link of the election: it makes the dialing
// member announce port instead of the one that it listens on.
//
// Of two members, only the one with the higher number keeps a connection of the
// election that it has dialed. Called by a lower one it hangs up and calls back,
// at the address that the greeting named: without this it would call past the
// forwarders.
func announce(member peer, port int) handshake {
	return func(r io.Reader) ([]byte, error) {
		const fixed = 8 + 8 + 4 // version, member's number, length of the address
		head := make([]byte, fixed)
		if _, err := io.ReadFull(r, head); err != nil {
			return nil, err
		}
		n := binary.BigEndian.Uint32(head[16:])
		if n > maxAddress {
			return nil, fmt.Errorf("zktest: election address of %d bytes: must have at most %d", n, maxAddress)
		}
		address := make([]byte, n)
		if _, err := io.ReadFull(r, address); err != nil {
			return nil, err
		}
		named := strings.ReplaceAll(string(address), loopback(member.election), loopback(port))
		head = binary.BigEndian.AppendUint32(head[:16], uint32(len(named)))
		return append(head, named...), nil
	}
}
