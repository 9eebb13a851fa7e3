package zktest

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Namespaces tells whether ensembles can have network namespaces ([WithNamespaces]):
// it makes some, cuts them off from each other, and removes them. Its error is
// [ErrNoNamespaces] with the reason: they take privileges (CAP_SYS_ADMIN and
// CAP_NET_ADMIN, as root has them outside most containers), ip and tc of iproute2,
// and nsenter of util-linux.
func Namespaces() error {
	_, err := retryTaken(func() (network, error) {
		n, err := newNamespaces(2)
		if err != nil {
			return nil, err
		}
		c := newCuts(2)
		c.isolated[0], c.clients[1] = true, true
		if err := errors.Join(n.set(c), n.set(newCuts(2)), n.close()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoNamespaces, err)
		}
		return n, nil
	})
	return err
}

// A namespaces is the network of an ensemble whose members each have a namespace of their own.
// Each pair of members has a pair of virtual interfaces. Each member has another pair with the
// namespace of this process, where clients are. There is no router and no bridge, and nothing in a
// namespace has a route to anywhere else.
//
// All addresses are of one subnet. A cut is a queueing discipline at the sender's interface that
// drops all packets and reports nothing.
//
// It does not outlive this process and its servers, however they end. A namespace has no name, and
// ends with the last process that has it open. Its interfaces end with it, and so do their other
// ends. Connections that were being closed across a cut hold it for a minute or two more, while
// the system sends into the void. The next network that is made removes such leftovers.
type namespaces struct {
	subnet
	members []namespace // in the order of their indexes
	outside namespace   // that of this process
	links   []string    // interfaces on the clients' side that were made
}

// The ports of all members, each of which has an address of its own.
const (
	clientPort   = 2181
	quorumPort   = 2888
	electionPort = 3888
)

// newNamespaces returns the network for n members, in operation.
func newNamespaces(n int) (network, error) {
	sweep()
	own, err := drawSubnet()
	if err != nil {
		return nil, err
	}
	return newNamespacesIn(own, n)
}

func newNamespacesIn(own subnet, n int) (network, error) {
	ns := &namespaces{subnet: own}
	if err := ns.make(n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoNamespaces, errors.Join(err, ns.close()))
	}
	return ns, nil
}

// make makes the namespaces and what connects them.
func (n *namespaces) make(members int) error {
	for range members {
		own, err := newNamespace()
		if err != nil {
			return err
		}
		n.members = append(n.members, own)
	}
	for i := range n.members {
		if err := n.joinClients(i); err != nil {
			return err
		}
	}
	for i := range n.members {
		if err := n.joinPeers(i); err != nil {
			return err
		}
	}
	for i := range n.members {
		if err := n.routePeers(i); err != nil {
			return err
		}
	}
	return nil
}

// joinClients links a member to its clients.
//
// The interfaces' hardware addresses are given, here and between members, because a system must
// not ask for them. A question without an answer is an error for the connecting process, and a cut
// has no answer.
func (n *namespaces) joinClients(i int) error {
	outer, member := n.outer(i), n.members[i]
	err := n.outside.batch("ip", fmt.Sprintf("link add %s address %s type veth peer name %s address %s netns %s",
		outer, hardware(0, i+1), clientsDevice, hardware(i+1, 0), member.path()))
	if err != nil {
		if strings.Contains(err.Error(), "File exists") {
			return fmt.Errorf("%w: %w", errPortTaken, err)
		}
		return err
	}
	n.links = append(n.links, outer)
	return errors.Join(
		member.batch("ip",
			"link set lo up",
			fmt.Sprintf("addr add %s/30 dev %s", n.server(i), clientsDevice),
			fmt.Sprintf("link set %s up", clientsDevice),
			fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", n.client(i), hardware(0, i+1), clientsDevice),
		),
		n.outside.batch("ip",
			fmt.Sprintf("addr add %s/30 dev %s", n.client(i), outer),
			fmt.Sprintf("link set %s up alias %s", outer, owner(os.Getpid())),
			fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", n.server(i), hardware(i+1, 0), outer),
		))
}

// joinPeers links a member to those after it.
func (n *namespaces) joinPeers(i int) error {
	lines := []string{fmt.Sprintf("addr add %s/32 dev lo", n.peer(i))}
	for j := i + 1; j < len(n.members); j++ {
		lines = append(lines, fmt.Sprintf("link add %s address %s type veth peer name %s address %s netns %s",
			peerDevice(j), hardware(i+1, j+1), peerDevice(i), hardware(j+1, i+1), n.members[j].path()))
	}
	return n.members[i].batch("ip", lines...)
}

// routePeers has a member find all others, once they are linked.
func (n *namespaces) routePeers(i int) error {
	var lines []string
	for j := range n.members {
		if j == i {
			continue
		}
		lines = append(lines,
			fmt.Sprintf("link set %s up", peerDevice(j)),
			fmt.Sprintf("route add %s/32 dev %s src %s", n.peer(j), peerDevice(j), n.peer(i)),
			fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", n.peer(j), hardware(j+1, i+1), peerDevice(j)))
	}
	return n.members[i].batch("ip", lines...)
}

func (n *namespaces) place(member int) place {
	p := place{host: n.server(member), port: clientPort, enter: n.members[member].enter()}
	for i := range n.members {
		p.peers = append(p.peers, peer{id: i + 1, host: n.peer(i), quorum: quorumPort, election: electionPort})
	}
	return p
}

// set gives every interface the discipline that it is to have, namespace by namespace. One that has it
// already does not change.
func (n *namespaces) set(c cuts) error {
	var errs []error
	var outside []string
	for i, member := range n.members {
		inside := []string{discipline(clientsDevice, c.clients[i])}
		for j := range n.members {
			if j != i {
				inside = append(inside, discipline(peerDevice(j), c.drop(i, j)))
			}
		}
		errs = append(errs, member.batch("tc", inside...))
		outside = append(outside, discipline(n.outer(i), c.clients[i]))
	}
	return errors.Join(append(errs, n.outside.batch("tc", outside...))...)
}

// discipline is the line that cuts an interface, or opens it again.
func discipline(device string, cut bool) string {
	kind := "noqueue" // which such interfaces have from the start
	if cut {
		kind = "blackhole"
	}
	return fmt.Sprintf("qdisc replace dev %s root %s", device, kind)
}

// close removes the interfaces on the clients' side, and with each its other end, and releases the
// namespaces.
func (n *namespaces) close() error {
	var lines []string
	for _, link := range n.links {
		lines = append(lines, "link del "+link)
	}
	n.links = nil
	var errs []error
	if len(lines) > 0 {
		errs = append(errs, n.outside.batch("ip", lines...))
	}
	for _, member := range n.members {
		errs = append(errs, member.close())
	}
	n.members = nil
	return errors.Join(errs...)
}
