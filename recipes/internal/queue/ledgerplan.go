package queue

// Numbers that say when a listing is asked for along with a node's creation, where it
// might not be needed.
const (
	coldAttempts = 32   // after one that turned out to need it, and lost a round trip
	usesToGuard  = 3    // from then on the directory is worth a watch
	addedAtMost  = 1024 // then a listing clears out what has gone unseen
)

// A plan says how an attempt learns where its new node stands, if not by the ledger.
type plan struct {
	list   bool  // it lists along with the creation
	makes  *base // others wait for that listing; it is to be concluded
	awaits *base // it waits for another's listing
	passed int   // nodes that had been seen to go by then
}

// A base is a listing on its way that others wait for who came together with its maker.
type base struct {
	done      chan struct{} // closed when it is there, or has failed
	meanwhile []change      // guarded by the ledger's mu, as late is
	late      bool          // somebody has waited in vain: nobody else does, nor are changes kept
}

// A change is that a node of the session's came, or that one was seen to go.
type change struct {
	node  Node
	czxid int64 // of one that came
	gone  bool
}

// keep takes note of a change. It needs the ledger's mu.
func (b *base) keep(c change) {
	if !b.late {
		b.meanwhile = append(b.meanwhile, c)
	}
}

// despair takes note that it was waited for in vain.
func (l *ledger) despair(b *base) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.late, b.meanwhile = true, nil
}

// plan returns the plan of an attempt that is about to create its node. crowded says
// that it isn't alone.
func (l *ledger) plan(crowded bool) plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entered++
	p := plan{passed: l.passed}
	switch {
	case l.cold > 0:
		l.cold--
		p.list = true
	case l.base != nil && l.base.late:
		p.list = true
	case l.base != nil:
		p.awaits = l.base
	case l.standsLocked():
		p.list = l.added >= addedAtMost
	case crowded || l.entered >= usesToGuard:
		l.base = &base{done: make(chan struct{})}
		p.list, p.makes = true, l.base
	default:
		p.list = true
	}
	return p
}
