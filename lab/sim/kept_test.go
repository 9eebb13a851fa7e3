package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zkserver"
)

// ownedKept is the guarantee of kept znodes, in addition to those of locks. While the client is Connected and
// the Node is open, the znode exists in the client's present session.
const ownedKept guarantee = "kept"

// Each client keeps a znode of its own in keptDir, and all contend for keptCommon.
const (
	keptDir    = "/sim/kept/"
	keptCommon = keptDir + "common"
)

// A keeping is what the clients of a schedule keep, in addition to their locks.
type keeping struct{ *task }

func kept() *recipe {
	return &recipe{
		name: "kept", plan: (*plan).takePaths, live: (*environment).keep, bugs: keptBugs(),
		met: append(comeAgain("node"), "kept Made", "kept Away", "kept Taken", "kept at the end",
			"fault "+takes, "kept closed while another has the path", byHand),
	}
}

// keep has each client keep znodes until end is called.
func (env *environment) keep() (end func()) {
	k := keeping{env.newTask()}
	k.each(9, k.live)
	return k.end
}

// live keeps one znode after another. Before some, it makes one at the path by hand.
func (k keeping) live(c *client, r *rand.Rand) {
	hand := rand.New(rand.NewPCG(c.plan.seed, 900))
	round := 0
	k.throughout(c, func(f *framework.Client) {
		round++
		path := keptDir + c.name
		if r.IntN(2) == 0 {
			path = keptCommon
		}
		var removeHand func() // nil if there is none
		if hand.IntN(4) == 0 {
			removeHand = k.makeByHand(f, path)
		}
		n := made(node.New(f, path, fmt.Appendf(nil, "%s of %s, round %d", canary, c.name, round)))
		remove := n.OnChange(func(change node.Change) { k.changed(n, change) })
		if k.ended(upTo(r, 3*k.env.plan.timeout)) && removeHand == nil {
			k.check(f, n, path)
		}
		k.close(c, f, n, r)
		remove()
		if removeHand != nil {
			removeHand()
		}
	})
}

// byHand is what checkHand counts.
const byHand = "kept made by hand"

// makeByHand makes a znode at the path, which is no Node's although it is of the same session, and returns
// what deletes it and waits for that, or nil.
func (k keeping) makeByHand(f *framework.Client, path string) (remove func()) {
	ctx, cancel := context.WithTimeout(k.env.ctx, k.env.plan.timeout)
	defer cancel()
	var st framework.Stat
	_, err := f.Create(ctx, path, []byte(canary+" by hand"), framework.Ephemeral(), framework.KnownBySession(), framework.StatTo(&st))
	if err != nil {
		return nil // it was taken, or there is no server; what may exist is deleted
	}
	key := nodeKey{path, st.Czxid}
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	k.env.byHand[key] = true
	k.env.counts[byHand]++
	return func() {
		k.env.mu.Lock()
		delete(k.env.byHand, key)
		k.env.mu.Unlock()
		over := make(chan struct{})
		f.Discard(path, framework.CreatedBy(key.czxid), framework.WhenOver(func(bool) { close(over) }))
		select { // until then the next Node finds it at the path
		case <-over:
		case <-k.env.ctx.Done():
		}
	}
}

// checkHand is the validator of "own znodes only": a recipe deletes no znode that its client has made by
// hand, while the client is in the session that has it. One of a former session has lost its znode anyway.
// It needs env.mu.
func (env *environment) checkHand(x zkserver.Transaction, key nodeKey, owner int64) {
	if env.byHand[key] && x.Ended == 0 && x.By == owner {
		env.violatedLocked(ownSession, "%s, which was made by hand, was deleted", key.path)
	}
}

// changed is the validator of "own session only": no client but the operator deletes a kept znode, or
// ends its session.
func (k keeping) changed(n *node.Node, change node.Change) {
	k.env.inspect(change.Err)
	k.env.count("kept "+change.Kind.String(), 1)
	if errors.Is(change.Err, framework.ErrNoNode) && !k.deleted(change.Path) && !k.expired(change.Path) {
		k.env.violated(ownSession, "%s was deleted, and not by the operator (closed: %v)", change.Path, n.Closed())
	}
}

// deleted reports whether the operator has deleted a znode at the path.
func (k keeping) deleted(path string) bool {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	for key := range k.env.doomed {
		if key.path == path {
			return true
		}
	}
	return false
}

// expired reports whether the operator has ended the session of the latest znode at the path. The server
// may notify the client of the znode's deletion before it closes the connection.
func (k keeping) expired(path string) bool {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	return k.env.killed[k.env.made[path].owner]
}

// check validates kept znodes, once all is well. Of the path that all clients contend for, only
// one client has the znode, and it may be about to close its Node. A Node whose znode the operator
// deleted while events were dropped may not have noticed.
func (k keeping) check(f *framework.Client, n *node.Node, path string) {
	if k.deleted(path) {
		return
	}
	ctx, cancel := context.WithTimeout(k.env.ctx, 3*k.env.plan.timeout+15*time.Second) // a Node pauses for 10 s
	defer cancel()
	err := n.Await(ctx)
	if n.Closed() || errors.Is(err, node.ErrTaken) && path == keptCommon {
		return
	}
	k.env.mu.Lock()
	owner := k.env.nodes[path].owner
	k.env.mu.Unlock()
	k.env.count("kept at the end", 1)
	if own := f.Session().ID; err != nil || !n.Exists() || owner != own {
		k.env.violated(ownedKept, "%s belongs to session %v; the Node of session %v says %v, %v", path, hex(owner), hex(own), n.Exists(), err)
	}
}

// close closes the Node. Its leftovers are noticed at the end.
func (k keeping) close(c *client, f *framework.Client, n *node.Node, r *rand.Rand) {
	k.env.mu.Lock()
	if k.env.taken[n.Path()] {
		k.env.counts["kept closed while another has the path"]++
	}
	k.env.mu.Unlock()
	_, _ = c.within("Close of a Node", r, upTo(r, k.env.plan.timeout), k.env.bug.close(f, n).Close)
}
