package queue

import (
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
)

// A ledger is what the attempts of one session know together about who stands in
// a directory. It makes listings unnecessary wherever all who have come since the
// last one are of the session.
//
// What it shows ahead of a node that it contains is all that can stand there: what
// stands was created in the order of its number (see [Queue.Heirs] for the exception),
// and every creation in the directory takes a number, one more than the last. So,
// beginning with a listing, each node of the session whose number is the next one is added; nothing
// else can have come. That is no longer so once a new directory, which counts from 0,
// has taken the place of the old one. A watch on the directory, the guard, tells: a
// server sends its event before the answer to whatever happened later.
//
// It may show some that have gone unseen.
type ledger struct {
	key   ledgerKey
	heirs func(gone, waiting Node) bool // of the queue

	mu      sync.Mutex     // guards following; never held across a request
	nodes   []Node         // in order; all that may stand with a number up to upto
	upto    int32          // if known
	known   bool           // there was a listing
	others  int            // children that it had beside contenders
	dir     int64          // czxid of the directory that it was of
	changed int64          // the transaction that it shows the directory's children as of
	guard   guard          // nil while there is none
	added   int            // nodes since the listing
	passed  int            // nodes that were seen to go
	entered int            // attempts that were about to
	base    *base          // a listing on its way that others wait for; or nil
	cold    int            // how many attempts are still to list for themselves
	covered map[string]int // nodes whose end somebody that waits will see

	users int // attempts; guarded by ledgers.mu
}

// A guard is a [framework.Watch] on the directory.
type guard interface {
	Stands() bool
	Stat() (framework.Stat, bool)
	Close()
}

// standsLocked reports whether the ledger goes on with the next number. It needs mu.
func (l *ledger) standsLocked() bool {
	if !l.known || l.guard == nil || !l.guard.Stands() {
		return false
	}
	st, _ := l.guard.Stat()
	return st.Czxid == l.dir
}

// arrive takes note that a node of the session's was created, with the czxid. It is called in the
// order of what the server tells: before [ledger.pass] for whatever went later.
func (l *ledger) arrive(q *Queue, node Node, czxid int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arriveLocked(q, node, czxid)
}

// arriveLate is arrive out of order: it counts if no node has passed since the plan was made.
func (l *ledger) arriveLate(q *Queue, node Node, czxid int64, p plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.passed == p.passed {
		l.arriveLocked(q, node, czxid)
	}
}

func (l *ledger) arriveLocked(q *Queue, node Node, czxid int64) {
	switch {
	case l.base != nil:
		l.base.keep(change{node: node, czxid: czxid})
	case !l.standsLocked():
	case l.addLocked(node, czxid):
		own := len(l.nodes) - 1
		l.nodes[own].first = q.Ahead(l.nodes, own) < 0
		l.nodes[own].only = own == 0 && l.others == 0
	default:
		l.cold = coldAttempts
	}
}

// addLocked adds the node if its number is the next one, in this directory and not in an
// earlier one. It needs mu.
func (l *ledger) addLocked(node Node, czxid int64) bool {
	if int64(node.Sequence) != int64(l.upto)+1 || node.Sequence == lastSequence || czxid <= l.dir {
		return false
	}
	l.nodes = append(l.nodes, node)
	l.upto = node.Sequence
	l.added++
	return true
}

// pass takes note that the node has gone.
func (l *ledger) pass(node Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed++
	if l.base != nil {
		l.base.keep(change{node: node, gone: true})
	}
	l.passLocked(node)
}

func (l *ledger) passLocked(node Node) {
	i := l.indexLocked(node)
	if i < 0 {
		return
	}
	if l.heirs != nil {
		for k := i + 1; k < len(l.nodes); k++ {
			l.nodes[k].doubt = l.nodes[k].doubt || l.heirs(l.nodes[i], l.nodes[k])
		}
	}
	if i == 0 {
		l.nodes = l.nodes[1:] // the usual case, without moving the others
		return
	}
	l.nodes = slices.Delete(l.nodes, i, i+1)
}

// indexLocked returns where the node stands, or -1. It needs mu.
func (l *ledger) indexLocked(node Node) int {
	if i, found := slices.BinarySearchFunc(l.nodes, node, compare); found {
		return i
	}
	if node.Sequence == lastSequence {
		return Index(l.nodes, node.Name) // such nodes are in another order
	}
	return -1
}

// covers reports whether somebody that waits will see the end of the node.
func (l *ledger) covers(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.covered[name] > 0
}

// cover takes note that somebody that waits will see the end of the node.
func (l *ledger) cover(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.covered[name]++
}

func (l *ledger) uncover(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.covered[name]--; l.covered[name] <= 0 {
		delete(l.covered, name)
	}
}
