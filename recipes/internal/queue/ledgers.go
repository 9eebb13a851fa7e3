package queue

import (
	"container/list"
	"sync"

	"github.com/docent-go/docent/framework"
)

// A ledgerKey names what the attempts have in common that share a ledger.
type ledgerKey struct {
	session   int64
	dir, kind string // in the ensemble; the first of the queue's kinds
}

// idleLedgers is how many ledgers a client keeps that nobody uses just now, each with a
// watch at the server at the most.
const idleLedgers = 1024

// ledgers are those of one client.
type ledgers struct {
	mu    sync.Mutex
	byKey map[ledgerKey]*ledger
	idle  list.List // of *ledger, the one that was used last at the end
	place map[*ledger]*list.Element
}

type ledgersKey struct{}

func ledgersOf(c *framework.Client) *ledgers {
	return c.Shared(ledgersKey{}, func() any {
		return &ledgers{byKey: make(map[ledgerKey]*ledger), place: make(map[*ledger]*list.Element)}
	}).(*ledgers)
}

// join returns the ledger of the queue in the session, for one more user. crowded says
// that it has others.
func (ls *ledgers) join(q *Queue, session int64) (l *ledger, crowded bool) {
	key := ledgerKey{session, q.Client.AbsolutePath(q.Dir), q.Kinds[0]}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l = ls.byKey[key]
	if l == nil {
		l = &ledger{key: key, heirs: q.Heirs, covered: make(map[string]int)}
		ls.byKey[key] = l
	}
	if at := ls.place[l]; at != nil {
		ls.idle.Remove(at)
		delete(ls.place, l)
	}
	l.users++
	return l, l.users > 1
}

// leave takes one user off, and forgets a ledger that has been idle for longest when
// there are too many.
func (ls *ledgers) leave(l *ledger) {
	if old := ls.retire(l); old != nil {
		old.close()
	}
}

func (ls *ledgers) retire(l *ledger) (old *ledger) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.users--; l.users > 0 {
		return nil
	}
	ls.place[l] = ls.idle.PushBack(l)
	if ls.idle.Len() <= idleLedgers {
		return nil
	}
	old = ls.idle.Remove(ls.idle.Front()).(*ledger)
	delete(ls.place, old)
	delete(ls.byKey, old.key)
	return old
}

// passed takes note that the node has gone, if anybody cares.
func (ls *ledgers) passed(key ledgerKey, node Node) {
	ls.mu.Lock()
	l := ls.byKey[key]
	ls.mu.Unlock()
	if l != nil {
		l.pass(node)
	}
}

// close ends the watch on the directory.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guardLocked(nil)
}
