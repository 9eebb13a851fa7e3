package zktest

import "slices"

// A cuts is who is cut off from whom in an ensemble, by the members' indexes.
type cuts struct {
	isolated []bool
	dropped  [][]bool // what the one sends, the other doesn't get
	clients  []bool
}

func newCuts(n int) cuts {
	c := cuts{isolated: make([]bool, n), dropped: make([][]bool, n), clients: make([]bool, n)}
	for i := range c.dropped {
		c.dropped[i] = make([]bool, n)
	}
	return c
}

func (c cuts) clone() cuts {
	c.isolated, c.clients, c.dropped = slices.Clone(c.isolated), slices.Clone(c.clients), slices.Clone(c.dropped)
	for i, others := range c.dropped {
		c.dropped[i] = slices.Clone(others)
	}
	return c
}

// drop reports whether what one member sends to another does not arrive.
func (c cuts) drop(from, to int) bool {
	return c.isolated[from] || c.isolated[to] || c.dropped[from][to]
}

// heal ends whatever was done to a member. Another one that is isolated remains so.
func (c cuts) heal(member int) {
	c.isolated[member], c.clients[member] = false, false
	for other := range c.dropped {
		c.dropped[member][other], c.dropped[other][member] = false, false
	}
}
