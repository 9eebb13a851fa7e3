package sim_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// A znode is an ephemeral one that exists, as the leader knows.
type znode struct {
	owner int64
	czxid int64
}

// observe receives the leader's decisions, before any client can know them: they are the truth
// that the validators use.
func (w *world) observe(x zkserver.Transaction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.Began != 0 {
		w.note("server", "begins session", hex(x.Began))
		w.whose[x.Began] = nil
	}
	if x.Ended != 0 {
		how := "expires session"
		if x.ByClient {
			how = "closes session"
		}
		w.note("server", how, hex(x.Ended))
	}
	for _, c := range x.Changes {
		switch c.Kind {
		case zkserver.Created:
			w.created(x, c)
		case zkserver.Deleted:
			w.deleted(x, c)
		case zkserver.DataSet:
			w.written(c)
		}
	}
	w.kinds.observe(w.now(), x)
	for _, observe := range w.observers {
		observe(x)
	}
	if x.Ended != 0 && !x.ByClient {
		w.counts["sessions expired"]++
		w.checkExpiry(x.Ended)
	}
}

func (w *world) created(x zkserver.Transaction, c zkserver.Change) {
	if c.Owner == 0 || c.Owner>>63 != 0 { // no session's, or a container
		return
	}
	w.note("server", "creates", c.Path)
	w.nodes[c.Path] = znode{c.Owner, x.Zxid}
	w.made[c.Path] = w.nodes[c.Path]
	dir, _ := framework.SplitPath(c.Path)
	w.inDir[dir] = append(w.inDir[dir], c.Path)
	w.cameAgain(c.Path, c.Owner)
	w.permitsMade(x, c)
}

// deleted compares the end of a znode with the leases that it carried. At that moment another
// client can be granted the lock.
func (w *world) deleted(x zkserver.Transaction, c zkserver.Change) {
	n, ok := w.nodes[c.Path]
	if !ok {
		return
	}
	w.note("server", "deletes", c.Path)
	w.checkDeletion(x, c.Path, n)
	key := nodeKey{c.Path, n.czxid}
	for _, t := range w.plan.targets {
		for _, s := range t.stakes {
			if s.node == key && !w.over(s) && !w.excused(s) {
				w.violatedLocked(lossFirst, "%s, which %s has %s by, is gone with session %#x, and the lease is neither lost nor released",
					c.Path, s.party, t.path, x.Ended)
			}
		}
	}
	delete(w.nodes, c.Path)
	dir, _ := framework.SplitPath(c.Path)
	w.leftPlace(c.Path, n)
	w.inDir[dir] = slices.DeleteFunc(w.inDir[dir], func(p string) bool { return p == c.Path })
}

// written is the validator of guarded writes: what a former holder writes late must
// not come after its successor's.
func (w *world) written(c zkserver.Change) {
	for _, t := range w.plan.targets {
		if c.Path != t.registerPath() {
			continue
		}
		number, _, _ := strings.Cut(string(c.Data), " ")
		fence, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		w.counts["guarded writes"]++
		if fence < t.register {
			w.violatedLocked(monotonicFence, "a write to %s of the holder with fence %d after one with %d", c.Path, fence, t.register)
		}
		t.register = max(t.register, fence)
	}
}

// told is how long after the end of its session at the server a client may still take
// itself to be in it: it has to know before, and the little is for an end at the same instant.
const told = 20 * time.Millisecond

// checkExpiry is the validator of "honest states" for a session that the server has expired: its
// client has found out by its own clock. A front end of an ensemble may still answer. If no lease
// is held in the session, the client can't know then. A client that is being closed has lost all
// it had, and reports Closed at the end of that.
func (w *world) checkExpiry(session int64) {
	if w.killed[session] || len(w.srv.Frontends()) > 1 {
		return
	}
	for _, c := range w.clients {
		time.AfterFunc(told, func() {
			f, closing := c.present()
			state := f.State()
			if closing {
				return // it has nothing, and tells of one more state only
			}
			if f.Session().ID == session && (state == framework.Connected || state == framework.Suspended) && f.State() == state {
				w.violated(honestStates, "%s is %v in session %#x, which the server has ended %v ago", c.name, state, session, told)
			}
		})
	}
}

type hex int64

func (h hex) String() string { return fmt.Sprintf("%#x", int64(h)) }
