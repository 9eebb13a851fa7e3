package sim_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zkserver"
)

// What a client has left behind, in a former session or a call that was withdrawn, still exists until
// its end is proven. The client must not count it as another's, and must not delete another's for it.

// An introduced connection records whose the session of its handshake is.
type introduced struct {
	net.Conn
	env  *environment
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
	id := int64(binary.BigEndian.Uint64(c.head[session:]))
	c.env.mu.Lock()
	defer c.env.mu.Unlock()
	if who, began := c.env.whose[id]; began && who == nil { // else the answer is one of a fault
		c.env.whose[id] = c.who
	}
	return n, err
}

// dialOperator connects the operator.
func (env *environment) dialOperator(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := env.srv.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &introduced{Conn: conn, env: env, who: theOperator}, nil
}

// theOperator is the record of the operator, which has no listener.
var theOperator = &record{client: "the operator"}

// checkDeletion is the validator of "own session only" for deletions: clients delete no ephemeral znodes
// but their own. The operator may delete any. It needs env.mu.
func (env *environment) checkDeletion(x zkserver.Transaction, path string, n znode) {
	if by := env.whose[x.By]; by != nil && by != theOperator && by != env.whose[n.owner] {
		env.violatedLocked(ownSession, "%s has deleted %s, which belongs to session %v", by.client, path, hex(n.owner))
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

// placeOf returns what the znode is of; "" if it is not to be counted. It needs env.mu.
func (env *environment) placeOf(znode string) string {
	dir, _ := zkpath.Split(znode)
	switch dir {
	case path.Clean(keptDir):
		return "node"
	case zkpath.Join(servicesRoot, serviceName):
		return "discovery"
	case partitionMembers:
		return "member"
	}
	for _, t := range env.plan.targets {
		if t.path == znode || t.path == dir || slices.Contains(t.directories(), dir) {
			return t.kind
		}
	}
	return ""
}

// cameAgain counts clients that create a znode in another session than their former one, or at once. It
// needs env.mu.
func (env *environment) cameAgain(znode string, session int64) {
	at := place{env.whose[session], env.placeOf(znode)}
	former, again := env.ends[at]
	switch {
	case !again || at.who == nil || at.what == "":
	case former.session != session:
		env.counts["again in another session: "+at.what]++
	case env.now()-former.at <= atOnce:
		env.counts["again at once: "+at.what]++
	}
}

// leftPlace records the end of a znode. It needs env.mu.
func (env *environment) leftPlace(path string, n znode) {
	env.ends[place{env.whose[n.owner], env.placeOf(path)}] = end{n.owner, env.now()}
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
	kind := &faultKind{name: takes, spares: true, begin: (*environment).takePath}
	for at := upTo(r, p.timeout); at < p.horizon; at += p.timeout + upTo(r, 2*p.timeout) {
		p.faults = append(p.faults, plannedFault{kind: kind, at: at, span: upTo(r, p.timeout*5/2), seed: r.Uint64()})
	}
	p.sortFaults()
}

// takes is the name of the fault.
const takes = "take the path of a kept znode"

// takePath is the fault. The operator keeps the path until some time after the outage.
func (env *environment) takePath(r *rand.Rand, span time.Duration) (end func()) {
	env.mu.Lock()
	var paths []string
	for at := range env.nodes {
		if slices.Contains([]string{"node", "discovery", "member"}, env.placeOf(at)) {
			paths = append(paths, at)
		}
	}
	slices.Sort(paths)
	var cut *client
	at := ""
	if len(paths) > 0 {
		at = paths[r.IntN(len(paths))]
		cut = env.clientOf(env.nodes[at].owner)
	}
	if cut == nil || env.taken[at] {
		env.mu.Unlock()
		return nil
	}
	own := env.nodes[at]
	env.doomed[nodeKey{at, own.czxid}], env.taken[at] = true, true
	env.mu.Unlock()
	env.harm(cut, span)
	cut.line.set(true, false)
	cut.line.cut()
	outage, heal := context.WithCancel(env.ctx)
	longer := upTo(r, env.plan.timeout)
	env.tasks.Go(func() { env.holdPath(outage, at, own.czxid, longer) }) // ends soon after the outage
	return func() {
		heal()
		cut.line.set(false, false)
	}
}

// clientOf returns the client whose session it is; nil if it is the operator's. It needs env.mu.
func (env *environment) clientOf(session int64) *client {
	i := slices.IndexFunc(env.clients, func(c *client) bool {
		return env.whose[session] != nil && env.whose[session].client == c.name
	})
	if i < 0 {
		return nil
	}
	return env.clients[i]
}

// holdPath has the operator keep a znode at the path until some time after the outage, in place of the
// client's, which the czxid created. It takes the path during the outage or not at all: a deletion that is
// on its way meets whatever znode is at its path by then.
func (env *environment) holdPath(outage context.Context, at string, czxid int64, longer time.Duration) {
	if _, err := env.operator.Txn(outage, framework.OpDelete(at, framework.AnyVersion, framework.CreatedBy(czxid)),
		framework.OpCreate(at, []byte(canary), framework.Ephemeral())); err == nil {
		env.count("fault "+takes, 1)
	}
	<-outage.Done()
	if env.ctx.Err() == nil {
		pass(longer)
	}
	for env.operator.Sync(env.ctx, at) != nil && env.ctx.Err() == nil { // else the transaction may be applied later
		pass(time.Second)
	}
	env.mu.Lock()
	own, exists := env.nodes[at]
	exists = exists && env.whose[own.owner] == theOperator
	delete(env.taken, at)
	env.mu.Unlock()
	if exists {
		env.operator.Discard(at, framework.CreatedBy(own.czxid))
	}
}

// A closer closes a Node.
type closer interface {
	Close(ctx context.Context) error
}

// keptBugs are what the validators have to find.
func keptBugs() []deliberate {
	return []deliberate{{ownSession, "a Node's Close deletes what is at its path", "which belongs to session", func(b *bug) {
		b.close = func(f *framework.Client, n *node.Node) closer { return blind{n, f} }
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
