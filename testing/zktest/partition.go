package zktest

import (
	"fmt"
	"slices"
)

// Isolate cuts a member off from the others, in both directions, until [Ensemble.Heal]. Nothing
// arrives of all that they send each other, no connection breaks by itself, and clients reach them
// all as before. It does nothing to a member that is isolated.
//
// A follower notices, and stops serving clients, when it has received nothing from its leader for
// the sync limit, less a tick or so ([WithSyncLimit]). Until then it answers reads from what it
// has. A leader without a majority notices as late.
//
// Its error, which only an ensemble in namespaces can have, says which part of the network could
// not be changed. It panics if s is not a member of e.
func (e *Ensemble) Isolate(s *Server) error {
	i := e.index(s)
	return e.change(func(c *cuts) { c.isolated[i] = true })
}

// Cut keeps what one member sends from arriving at another, until [Ensemble.Heal] of either. The
// other direction works, but the two have no new connection, which takes both directions. In all
// else it is as Isolate.
func (e *Ensemble) Cut(from, to *Server) error {
	i, j := e.index(from), e.index(to)
	return e.change(func(c *cuts) { c.dropped[i][j] = true })
}

// CutClients drops everything that a member and its clients send each other, until
// [Ensemble.Heal]. Every function of this package that asks a member is a client. The other
// members reach it as before. It returns [ErrNoNamespaces], and does nothing, for an ensemble
// without [WithNamespaces]. In all else it is as Isolate.
func (e *Ensemble) CutClients(s *Server) error {
	i := e.index(s)
	return e.change(func(c *cuts) { c.clients[i] = true })
}

// Heal ends what [Ensemble.Isolate], [Ensemble.Cut] and [Ensemble.CutClients] did to a member. The
// connections to a member that is isolated itself remain cut. Where a connection still exists,
// what was sent on it arrives late. A forwarder delivers it at once. In a namespace it arrives
// when the system sends it again, which takes up to as long as the cut was. [Server.Mode] reports
// when the member has found its leader again. Heal does nothing to a member that is not cut off.
// In all else it is as Isolate.
func (e *Ensemble) Heal(s *Server) error {
	i := e.index(s)
	return e.change(func(c *cuts) { c.heal(i) })
}

// change changes who is cut off from whom. After an error the next change tries what
// is missing again.
func (e *Ensemble) change(do func(c *cuts)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed := e.cuts.clone()
	do(&changed)
	if err := e.network.set(changed); err != nil {
		return fmt.Errorf("zktest: network of %s: %w", e.Addr(), err)
	}
	e.cuts = changed
	return nil
}

func (e *Ensemble) index(s *Server) int {
	i := slices.Index(e.Servers, s)
	if i < 0 {
		panic("zktest: server " + s.Addr() + " is not a member of this ensemble")
	}
	return i
}

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
