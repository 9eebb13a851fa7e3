package sim_test

import (
	"context"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zkserver"
)

// What a client has left behind, in a former session or a call that was withdrawn, still exists until
// its end is proven. The client must not count it as another's, and must not delete another's for it.

// An introduced connection records whose the session of its handshake is.
type introduced struct {
	net.Conn
	w    *world
	who  *record
	head []byte // of the answer to the handshake; used by Read alone
}

func (c *introduced) Read(p []byte) (int, error) {
	const session, end = 12, 20 // behind the frame's length, the protocol's version and the timeout
	n, err := c.Conn.Read(p)
	missing := end - len(c.head)
	if missing == 0 || n <= 0 {
		return n, err
	}
	if c.head = append(c.head, p[:min(n, missing)]...); len(c.head) < end {
		return n, err
	}
	id := int64(big.Uint64(c.head[session:]))
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if who, began := c.w.whose[id]; began && who == nil { // else the answer is one of a fault
		c.w.whose[id] = c.who
	}
	return n, err
}

// dialOperator connects the operator.
func (w *world) dialOperator(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := w.srv.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &introduced{Conn: conn, w: w, who: theOperator}, nil
}

// theOperator is the record of the operator, which has no listener.
var theOperator = &record{client: "the operator"}

// checkDeletion is the validator of "own session only" for deletions: clients delete no ephemeral znodes
// but their own. The operator may delete any. It needs w.mu.
func (w *world) checkDeletion(x zkserver.Transaction, path string, n znode) {
	if by := w.whose[x.By]; by != nil && by != theOperator && by != w.whose[n.owner] {
		w.violatedLocked(ownSession, "%s has deleted %s, which belongs to session %v", by.client, path, hex(n.owner))
	}
}

// A place is where a framework.Client has znodes.
type place struct {
	who  *record
	what string
}

// An end is that of a znode.
type end struct {
	session int64 // that it belonged to
	at      time.Duration
}

// atOnce is how soon after the end of its former znode a client comes again at once.
const atOnce = 50 * time.Millisecond

// placeOf returns what the znode is of; "" if it is not to be counted. It needs w.mu.
func (w *world) placeOf(znode string) string {
	dir, _ := framework.SplitPath(znode)
	switch dir {
	case path.Clean(keptDir):
		return "node"
	case framework.JoinPath(servicesRoot, serviceName):
		return "discovery"
	case partitionMembers:
		return "member"
	}
	for _, t := range w.plan.targets {
		if t.path == znode || t.path == dir || slices.Contains(t.directories(), dir) {
			return t.kind
		}
	}
	return ""
}

// cameAgain counts clients that create a znode in another session than their former one, or at once. It
// needs w.mu.
func (w *world) cameAgain(znode string, session int64) {
	at := place{w.whose[session], w.placeOf(znode)}
	former, again := w.ends[at]
	switch {
	case !again || at.who == nil || at.what == "":
	case former.session != session:
		w.counts["again in another session: "+at.what]++
	case w.now()-former.at <= atOnce:
		w.counts["again at once: "+at.what]++
	}
}

// leftPlace records the end of a znode. It needs w.mu.
func (w *world) leftPlace(path string, n znode) {
	w.ends[place{w.whose[n.owner], w.placeOf(path)}] = end{n.owner, w.now()}
}

// comeAgain are the counts of cameAgain that must not be 0 after many schedules.
func comeAgain(what string) []string {
	return []string{"again in another session: " + what, "again at once: " + what}
}

// takePaths adds faults to half of the plans: a client is cut off, and the operator deletes a znode
// that the client keeps, and creates one at the path.
func (p *plan) takePaths(r *rand.Rand) {
	if r.IntN(2) == 0 || slices.ContainsFunc(p.faults, func(f plannedFault) bool { return f.kind.name == takes }) {
		return
	}
	kind := &faultKind{name: takes, spares: true, begin: (*world).takePath}
	for at := upTo(r, p.timeout); at < p.horizon; at += p.timeout + upTo(r, 2*p.timeout) {
		p.faults = append(p.faults, plannedFault{kind: kind, at: at, span: upTo(r, p.timeout*5/2), seed: r.Uint64()})
	}
	p.sortFaults()
}

// takes is the name of the fault.
const takes = "take the path of a kept znode"

// takePath is the fault. The operator keeps the path until some time after the outage.
func (w *world) takePath(r *rand.Rand, span time.Duration) (end func()) {
	w.mu.Lock()
	var paths []string
	for at := range w.nodes {
		if slices.Contains([]string{"node", "discovery", "member"}, w.placeOf(at)) {
			paths = append(paths, at)
		}
	}
	slices.Sort(paths)
	var cut *client
	at := ""
	if len(paths) > 0 {
		at = paths[r.IntN(len(paths))]
		cut = w.clientOf(w.nodes[at].owner)
	}
	if cut == nil || w.taken[at] {
		w.mu.Unlock()
		return nil
	}
	w.doomed[nodeKey{at, w.nodes[at].czxid}], w.taken[at] = true, true
	w.mu.Unlock()
	w.harm(cut, span)
	cut.line.set(true, false)
	cut.line.cut()
	healed, longer := make(chan struct{}), upTo(r, w.plan.timeout)
	w.tasks.Go(func() { w.holdPath(at, healed, longer) }) // ends soon after the outage
	return func() {
		cut.line.set(false, false)
		close(healed)
	}
}

// clientOf returns the client whose session it is; nil if it is the operator's. It needs w.mu.
func (w *world) clientOf(session int64) *client {
	i := slices.IndexFunc(w.clients, func(c *client) bool {
		return w.whose[session] != nil && w.whose[session].client == c.name
	})
	if i < 0 {
		return nil
	}
	return w.clients[i]
}

// holdPath has the operator keep a znode at the path until some time after the outage.
func (w *world) holdPath(at string, healed <-chan struct{}, longer time.Duration) {
	ctx, cancel := context.WithTimeout(w.ctx, w.settling())
	defer cancel()
	if _, err := w.operator.Txn(ctx, framework.OpDelete(at, framework.AnyVersion),
		framework.OpCreate(at, []byte(canary), framework.Ephemeral())); err == nil {
		w.count("fault "+takes, 1)
	}
	select {
	case <-healed:
		pass(longer)
	case <-w.ctx.Done():
	}
	for w.operator.Sync(w.ctx, at) != nil && w.ctx.Err() == nil { // else the transaction may be applied later
		pass(time.Second)
	}
	w.mu.Lock()
	own, exists := w.nodes[at]
	exists = exists && w.whose[own.owner] == theOperator
	delete(w.taken, at)
	w.mu.Unlock()
	if exists {
		w.operator.Discard(at, framework.CreatedBy(own.czxid))
	}
}

// A closer closes a Node.
type closer interface {
	Close(ctx context.Context) error
}

// closerOf returns what closes the Node.
func (k *keeping) closerOf(f *framework.Client, n *node.Node) closer {
	if k.w.bug.close != nil {
		return k.w.bug.close(f, n)
	}
	return n
}

// keptBugs are what the validators have to find.
func keptBugs() []deliberate {
	return []deliberate{{ownSession, "a Node's Close deletes what is at its path", "which belongs to session", func() bug {
		return bug{close: func(f *framework.Client, n *node.Node) closer { return blind{n, f} }}
	}}}
}

// A blind Node deletes whatever is at its path.
type blind struct {
	*node.Node
	f *framework.Client
}

func (n blind) Close(ctx context.Context) error {
	if path := n.Path(); path != "" {
		_ = n.f.Delete(ctx, path)
	}
	return n.Node.Close(ctx)
}
