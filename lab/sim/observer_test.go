package sim_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/testing/zkserver"
)

// A znode is an ephemeral one that exists, as the leader knows.
type znode struct {
	owner int64
	czxid int64
}

// observe receives the leader's decisions, before any client can know them: they are the truth
// that the validators use.
func (env *environment) observe(x zkserver.Transaction) {
	env.mu.Lock()
	defer env.mu.Unlock()
	x = env.inView(x)
	if x.Began != 0 {
		env.note("server", "begins session", hex(x.Began))
		env.whose[x.Began] = nil
	}
	if x.Ended != 0 {
		how := "expires session"
		if x.ByClient {
			how = "closes session"
		}
		env.note("server", how, hex(x.Ended))
	}
	for _, c := range x.Changes {
		switch c.Kind {
		case zkserver.Created:
			env.created(x, c)
		case zkserver.Deleted:
			env.deleted(x, c)
		case zkserver.DataSet:
			env.written(c)
		}
	}
	env.kinds.observe(env.now(), x)
	for _, observe := range env.observers {
		observe(x)
	}
	if x.Ended != 0 && !x.ByClient {
		env.counts["sessions expired"]++
		env.checkExpiry(x.Ended)
	}
}

// tell calls observe, with mu held, for each transaction that the leader decides from now on.
func (env *environment) tell(observe func(zkserver.Transaction)) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.observers = append(env.observers, observe)
}

func (env *environment) created(x zkserver.Transaction, c zkserver.Change) {
	if c.Owner == 0 || c.Owner>>63 != 0 { // no session's, or a container
		return
	}
	env.note("server", "creates", c.Path)
	env.nodes[c.Path] = znode{c.Owner, x.Zxid}
	env.made[c.Path] = env.nodes[c.Path]
	dir, _ := zkpath.Split(c.Path)
	env.inDir[dir] = append(env.inDir[dir], c.Path)
	env.cameAgain(c.Path, c.Owner)
	if env.writeNext != nil {
		env.writeNext(c.Path)
	}
	env.permitsMade(x, c)
}

// deleted compares the end of a znode with the leases that it carried. At that moment another
// client can be granted the lock.
func (env *environment) deleted(x zkserver.Transaction, c zkserver.Change) {
	n, ok := env.nodes[c.Path]
	if !ok {
		return
	}
	env.note("server", "deletes", c.Path)
	env.checkDeletion(x, c.Path, n)
	key := nodeKey{c.Path, n.czxid}
	env.checkHand(x, key, n.owner)
	for _, t := range env.plan.targets {
		for _, s := range t.stakes {
			if s.node == key && !env.over(s) && !env.excused(s) {
				env.violatedLocked(lossFirst, "%s, which %s has %s by, is gone with session %#x, and the lease is neither lost nor released",
					c.Path, s.party, t.path, x.Ended)
			}
		}
	}
	delete(env.nodes, c.Path)
	dir, _ := zkpath.Split(c.Path)
	env.leftPlace(c.Path, n)
	env.inDir[dir] = slices.DeleteFunc(env.inDir[dir], func(p string) bool { return p == c.Path })
}

// written is the validator of guarded writes: what a former holder writes late must
// not come after its successor's.
func (env *environment) written(c zkserver.Change) {
	for _, t := range env.plan.targets {
		if c.Path != t.registerPath() {
			continue
		}
		number, _, _ := strings.Cut(string(c.Data), " ")
		fence, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		env.counts["guarded writes"]++
		if fence < t.register {
			env.violatedLocked(monotonicFence, "a write to %s of the holder with fence %d after one with %d", c.Path, fence, t.register)
		}
		t.register = max(t.register, fence)
	}
}

// notice is how long after the end of its session at the server a client may still take
// itself to be in it: it has to know before, and the little is for an end at the same instant.
const notice = 20 * time.Millisecond

// checkExpiry is the validator of "honest states" for a session that the server has expired: its
// client has found out by its own clock. A front end of an ensemble may still answer. If no lease
// is held in the session, the client can't know then. A client that is being closed has lost all
// it had, and reports Closed at the end of that.
func (env *environment) checkExpiry(session int64) {
	if env.killed[session] || len(env.srv.Frontends()) > 1 {
		return
	}
	for _, c := range env.clients {
		time.AfterFunc(notice, func() {
			f, closing := c.present()
			state := f.State()
			if closing {
				return // it has nothing, and tells of one more state only
			}
			if f.Session().ID == session && (state == framework.Connected || state == framework.Suspended) && f.State() == state {
				env.violated(honestStates, "%s is %v in session %#x, which the server has ended %v ago", c.name, state, session, notice)
			}
		})
	}
}

type hex int64

func (h hex) String() string { return fmt.Sprintf("%#x", int64(h)) }
