//go:build linux

package zktest

import "errors"

// A TestNetwork shows a network of namespaces without servers.
type TestNetwork struct {
	Peers, Servers []string   // addresses by member
	Enter          [][]string // by member
	Cut            func(from, to int) error
	Heal           func() error
	Close          func() error

	network network
}

func NewNetwork(members int) (TestNetwork, error) {
	n, err := retryTaken(func() (network, error) { return newNamespaces(members) })
	if err != nil {
		return TestNetwork{}, err
	}
	return show(n, members), nil
}

// Again attempts to make another network in the same subnet.
func (t TestNetwork) Again() error {
	n, err := newNamespacesIn(t.network.(*namespaces).subnet, len(t.Peers))
	if err != nil {
		return err
	}
	return n.close()
}

// Abandon makes a process that is gone the owner of the network.
func (t TestNetwork) Abandon(pid int) error {
	n := t.network.(*namespaces)
	var errs []error
	for _, link := range n.links {
		errs = append(errs, n.outside.batch("ip", "link set "+link+" alias "+owner(pid)))
	}
	n.links = nil // another process is to remove them
	return errors.Join(errs...)
}

func show(n network, members int) TestNetwork {
	none := func() cuts { return newCuts(members) }
	t := TestNetwork{
		network: n,
		Cut:     func(from, to int) error { c := none(); c.dropped[from][to] = true; return n.set(c) },
		Heal:    func() error { return n.set(none()) },
		Close:   n.close,
	}
	for i := range members {
		p := n.place(i)
		t.Peers, t.Servers, t.Enter = append(t.Peers, p.peers[i].host), append(t.Servers, p.host), append(t.Enter, p.enter)
	}
	return t
}
