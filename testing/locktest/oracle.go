package locktest

import (
	"sync"
	"testing"

	"github.com/docent-go/docent/recipes/lock"
)

// An Oracle is a registry of one lock's holders, outside ZooKeeper. A holder enters when the lock
// is granted, and leaves before it releases. If another holder has entered, and has not lost its
// lease, the oracle fails the test. Its methods may be called concurrently, on any goroutine.
//
// A holder that has lost its lease need not leave. The oracle checks the lease's Lost, which must
// be closed before another client can be granted the lock. That holds for the loss of a session.
// It can't hold where another client deletes a holder's znode, so such a holder has to leave
// before the deletion.
type Oracle struct {
	t testing.TB

	mu        sync.Mutex // guards following
	holders   map[*lock.Lease]holder
	grants    int
	highest   int64 // fence of all holders so far
	exclusive int64 // highest fence of those that were to be alone
}

// A holder is one share in the lock, as the oracle sees it.
type holder struct {
	node    string
	fence   int64
	shared  bool
	permits int // of several that are counted; else 0
}

// NewOracle returns an oracle for one lock, which reports to t.
func NewOracle(t testing.TB) *Oracle {
	t.Helper()
	return &Oracle{t: t, holders: make(map[*lock.Lease]holder)}
}

// Enter records that l was granted to an owner that is to be alone with the lock. A further lease
// of the same hold, as of a reentrant lock, is not another owner. Enter also checks that the fence
// has grown from holder to holder.
func (o *Oracle) Enter(l *lock.Lease) { o.enter(l, false, 0, 0) }

// EnterShared is Enter for an owner that may be together with others that share.
func (o *Oracle) EnterShared(l *lock.Lease) { o.enter(l, true, 0, 0) }

// EnterPermits is Enter for an owner that holds n permits of a semaphore that has limit of them.
func (o *Oracle) EnterPermits(l *lock.Lease, n, limit int) { o.enter(l, true, n, limit) }

// Leave records that l is about to be released. It does nothing if l was never entered.
func (o *Oracle) Leave(l *lock.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.holders, l)
}

// Grants returns how many times the oracle was told of a grant.
func (o *Oracle) Grants() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.grants
}

// Holders returns how many leases are held now, as far as the oracle was told.
func (o *Oracle) Holders() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for l := range o.holders {
		if !lost(l) {
			n++
		}
	}
	return n
}

func (o *Oracle) enter(l *lock.Lease, shared bool, permits, limit int) {
	o.t.Helper()
	first := firstOf(l)
	s := holder{first.Node(), first.Fence(), shared, permits}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.grants++
	again, held := false, permits
	for other, there := range o.holders {
		switch {
		case lost(other):
			delete(o.holders, other)
		case there.node == s.node && there.fence == s.fence:
			again = true
		case !shared || !there.shared:
			o.t.Errorf("oracle: %s granted with fence %d while %s with fence %d is neither lost nor released",
				s.node, s.fence, there.node, there.fence)
		default:
			held += there.permits
		}
	}
	if held > limit {
		o.t.Errorf("oracle: %s granted with fence %d: %d permits of %d are neither lost nor released",
			s.node, s.fence, held, limit)
	}
	o.holders[l] = s
	if !again {
		o.checkFenceLocked(s)
	}
}

// checkFenceLocked holds a new holder's fence against those before it. It needs mu.
func (o *Oracle) checkFenceLocked(s holder) {
	o.t.Helper()
	floor := o.highest
	if s.shared { // those that share may enter in any order
		floor = o.exclusive
	} else {
		o.exclusive = max(o.exclusive, s.fence)
	}
	if s.fence <= floor {
		o.t.Errorf("oracle: fence %d of %s after fence %d: must grow", s.fence, s.node, floor)
	}
	o.highest = max(o.highest, s.fence)
}

func lost(l *lock.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// firstOf returns the lease itself, or that of a Multi's first member, which has a znode.
func firstOf(l *lock.Lease) *lock.Lease {
	if members := l.Members(); members != nil {
		return members[0]
	}
	return l
}
