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

// A condition is what is known of an interface. All begin open.
type condition int

const (
	open condition = iota
	shut
	doubtful // a change failed
)

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
	after := make(map[device]condition)
	for _, c := range changes {
		want, discipline := open, "noqueue" // which such interfaces have from the start
		if c.cut {
			want, discipline = shut, "blackhole"
		}
		if n.conditions[c.device] != want {
			after[c.device] = want
			lines = append(lines, fmt.Sprintf("qdisc replace dev %s root %s", c.name, discipline))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	err := in.batch("tc", lines...)
	for device, condition := range after {
		if err != nil {
			condition = doubtful
		}
		n.conditions[device] = condition
	}
	return err
}
