package queue

import (
	"slices"

	"github.com/docent-go/docent/framework"
)

// A listing is what a directory was found to contain, with the czxid of the directory.
type listing struct {
	nodes   []Node // the contenders, in order
	others  int    // how many children are none
	dir     int64
	changed int64 // the transaction that the children are as of
	next    int64 // the number that the next child gets
}

// nextNumber returns the number that the directory's next sequential child gets: how many
// children it has had. What a Stat shows as Cversion counts deletions as well
// (org.apache.zookeeper.server.DataNode.copyStat).
func nextNumber(dir framework.Stat) int64 {
	return int64(uint32(dir.Cversion)+uint32(dir.NumChildren)) / 2
}

// last returns the greatest number of the contenders. counted says whether all that come later
// get greater ones: not so behind one that was made by hand, or at the counter's end.
func (found listing) last() (number int32, counted bool) {
	if len(found.nodes) == 0 {
		return 0, false
	}
	number = found.nodes[len(found.nodes)-1].Sequence
	return number, number != lastSequence && int64(number) < found.next
}

// renew takes over a listing.
func (l *ledger) renew(found listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewLocked(found)
}

// renewLocked keeps what came behind the last that was listed. A listing that is older than
// the last one is of no use: whoever takes it over may have been held up, and heirs
// have come since. It needs mu.
func (l *ledger) renewLocked(found listing) {
	if found.changed < l.changed {
		return
	}
	l.changed = found.changed
	nodes := slices.Clone(found.nodes) // what was found is somebody's, who may go on with it
	upto, counted := found.last()
	if !counted {
		l.known, l.nodes = false, nodes
		return
	}
	if l.known && l.dir == found.dir && l.upto > upto {
		for _, n := range l.nodes {
			if n.Sequence > upto {
				nodes = append(nodes, n)
			}
		}
		upto = l.upto
	}
	l.known, l.nodes, l.upto, l.others, l.dir, l.added = true, nodes, upto, found.others, found.dir, 0
}

// conclude ends the base that its maker has set the guard and listed for, or has failed to: nil.
func (l *ledger) conclude(set guard, found *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := l.base
	l.base = nil
	if set != nil {
		l.guardLocked(set)
	}
	if found != nil {
		l.renewLocked(*found)
		l.catchUpLocked(made.meanwhile)
	}
	close(made.done)
}

// catchUpLocked goes through the changes, in their order: who came may have had somebody ahead
// who has gone since. Who came may have gone, too, before the listing was made: so nobody is
// taken for the first, see findNew. It needs mu.
func (l *ledger) catchUpLocked(changes []change) {
	if !l.standsLocked() {
		return
	}
	for _, c := range changes {
		if i, found := slices.BinarySearchFunc(l.nodes, c.node, compare); c.gone && !found && c.node.Sequence <= l.upto {
			l.nodes = slices.Insert(l.nodes, i, c.node)
		}
	}
	for _, c := range changes {
		if c.gone {
			l.passLocked(c.node)
		} else {
			l.addLocked(c.node, c.czxid)
		}
	}
}

// guardLocked replaces the guard. It needs mu.
func (l *ledger) guardLocked(with guard) {
	if l.guard != nil {
		l.guard.Close()
	}
	l.guard = with
}
