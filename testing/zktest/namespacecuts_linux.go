package zktest

import (
	"errors"
	"fmt"
)

// A device is an interface in a namespace.
type device struct {
	member int // outside: -1
	name   string
}

// set changes the interfaces that have to change, namespace by namespace.
func (n *namespaces) set(c cuts) error {
	var errs []error
	var outside []change
	for i := range n.members {
		inside := []change{{device{i, clientsDevice}, c.clients[i]}}
		for j := range n.members {
			if j != i {
				inside = append(inside, change{device{i, peerDevice(j)}, c.drop(i, j)})
			}
		}
		errs = append(errs, n.apply(n.members[i], inside))
		outside = append(outside, change{device{-1, n.outer(i)}, c.clients[i]})
	}
	return errors.Join(append(errs, n.apply(n.outside, outside))...)
}

// A change is an interface with what is to become of it.
type change struct {
	device
	cut bool
}

// apply makes changes to the interfaces of one namespace.
func (n *namespaces) apply(in namespace, changes []change) error {
	var lines []string
	for _, c := range changes {
		switch {
		case c.cut && !n.cut[c.device]:
			lines = append(lines, fmt.Sprintf("qdisc replace dev %s root blackhole", c.name))
		case !c.cut && n.cut[c.device]:
			lines = append(lines, fmt.Sprintf("qdisc del dev %s root", c.name))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if err := in.batch("tc", lines...); err != nil {
		return err
	}
	for _, c := range changes {
		n.cut[c.device] = c.cut
	}
	return nil
}
