package queue

import "slices"

// A position is where a node stands in a queue.
type position struct {
	place       int    // how many stand ahead
	ahead       string // name of the node that it waits for; "" for none
	next        string // which one it would wait for if that left now; "" for none
	nextCovered bool   // somebody of the session will see the end of that one
}

// position returns where the node at own stands among the nodes.
func (q *Queue) position(nodes []Node, own int) position {
	p := position{place: own}
	ahead := q.Ahead(nodes, own)
	if ahead < 0 {
		return p
	}
	p.ahead = nodes[ahead].Name
	if ahead == 0 {
		return p // who is behind nobody leaves nobody to wait for
	}
	if next := q.aheadWithout(nodes, own, ahead); next >= 0 {
		p.next = nodes[next].Name
	}
	return p
}

// aheadWithout returns which node the one at own would wait for without the one at
// i, or -1. The usual case, that the two are neighbours, copies nothing.
func (q *Queue) aheadWithout(nodes []Node, own, i int) int {
	if i == own-1 {
		nodes[i], nodes[own] = nodes[own], nodes[i]
		next := q.Ahead(nodes[:own], i)
		nodes[i], nodes[own] = nodes[own], nodes[i]
		return next
	}
	next := q.Ahead(slices.Concat(nodes[:i], nodes[i+1:own+1]), own-1)
	if next >= i {
		next++
	}
	return next
}
