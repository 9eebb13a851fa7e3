package waitqueue

// A position is where a node is in a queue.
type position struct {
	place int    // how many are ahead
	ahead string // name of the node that it waits for; "" for none
	next  string // which one it would wait for then; "" for none
	last  bool   // the end of the one ahead is the grant; see Queue.Heirs
	both  bool   // the end of both is the grant: no other node can be in the way
}

// position returns where the node at own is among the nodes.
func (q *Queue) position(nodes []Node, own int) position {
	p := position{place: own}
	ahead := q.Ahead(nodes, own, own)
	if ahead < 0 {
		return p
	}
	p.ahead = nodes[ahead].Name
	leaves := func(i int) bool { return q.Heirs != nil && q.Heirs(nodes[i], nodes[own]) }
	next := q.Ahead(nodes, own, ahead)
	if next < 0 {
		p.last = !leaves(ahead)
		return p
	}
	p.next = nodes[next].Name
	p.both = q.Ahead(nodes, own, next) < 0 && !leaves(ahead) && !leaves(next)
	return p
}

// withoutNext returns the position after the deletion of the next node. It needs both.
func (p position) withoutNext() position {
	return position{place: p.place - 1, ahead: p.ahead, last: true}
}
