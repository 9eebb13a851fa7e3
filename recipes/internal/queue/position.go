package queue

// A position is where a node is in a queue.
type position struct {
	place int    // how many are ahead
	ahead string // name of the node that it waits for; "" for none
	next  string // which one it would wait for then; "" for none
	last  bool   // the end of the one ahead is the grant; see Queue.Heirs
}

// position returns where the node at own is among the nodes.
func (q *Queue) position(nodes []Node, own int) position {
	p := position{place: own}
	ahead := q.Ahead(nodes, own, own)
	if ahead < 0 {
		return p
	}
	p.ahead = nodes[ahead].Name
	if next := q.Ahead(nodes, own, ahead); next >= 0 {
		p.next = nodes[next].Name
	}
	p.last = p.next == "" && (q.Heirs == nil || !q.Heirs(nodes[ahead], nodes[own]))
	return p
}
