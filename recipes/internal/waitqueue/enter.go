package waitqueue

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// enter makes sure that the attempt has a node of a session that has not ended.
func (a *Attempt) enter(ctx context.Context) error {
	if a.hold != nil && a.hold.Err() != nil {
		a.leave()
	}
	for a.node == "" {
		if err := a.bind(ctx); err != nil {
			return err
		}
		err := a.create(ctx)
		switch {
		case errors.Is(err, framework.ErrSessionEnded):
			a.leave()
		case err != nil:
			return err
		}
	}
	return nil
}

func (a *Attempt) bind(ctx context.Context) error {
	switch {
	case a.hold != nil:
		return nil
	case a.write != nil && a.writeNode().Overflowed():
		return ErrCounterEnd
	}
	session, err := a.queue.Client.HoldSession(ctx)
	if err != nil {
		return err
	}
	a.hold = session
	a.client = a.queue.Client.InSession(session.Session())
	dir := a.client.AbsolutePath(a.queue.Dir)
	a.key = listingKey{session.Session(), dir, a.queue.Kinds[0], a.queue.Refused}
	if a.write != nil && a.write.Session.Session() != session.Session() {
		a.write = nil
	}
	return nil
}

// checkFree returns ErrBusy if the attempt would have a predecessor. The client's server may lag
// behind the server that processed a release, so the first listing may be old. checkFree therefore
// syncs and lists again before it refuses. A leader answers a sync before it has applied all that
// it has committed. So an attempt that is connected to the leader may be refused right after a
// release.
func (a *Attempt) checkFree(ctx context.Context) error {
	for _, synced := range []bool{false, true} {
		if synced {
			if err := a.queue.Client.Sync(ctx, a.queue.Dir); err != nil {
				return err
			}
		}
		nodes, err := a.queue.List(ctx)
		if err != nil {
			return err
		}
		if own := len(nodes); a.queue.Predecessor(append(nodes, a.last(nodes)), own, own) < 0 {
			return nil
		}
	}
	return ErrBusy
}

// last returns what the attempt's node would be if it came behind all others.
func (a *Attempt) last(nodes []Node) Node {
	n := Node{Kind: a.kind}
	if len(nodes) > 0 {
		n.Sequence = nodes[len(nodes)-1].Sequence + 1
	}
	return n
}

// create creates the node. It lists along with the creation if not too many other attempts do.
func (a *Attempt) create(ctx context.Context) error {
	data := a.data() // first: it may be a user's, and other attempts may wait for the listing
	along, end := listingsOf(a.client).begin(a.key)
	c := a.creation(along)
	defer func() { end(c.names) }()
	node, err := a.client.Create(ctx, framework.JoinPath(a.queue.Dir, c.name), data, c.opts...)
	if err != nil {
		return err
	}
	a.created(node, c)
	return nil
}

// A creation is how an attempt's node is to be created.
type creation struct {
	begun time.Time
	name  string // without what framework and server add
	opts  []framework.CreateOption
	names []string // of the directory's children, if listed
}

func (a *Attempt) creation(along bool) *creation {
	c := &creation{begun: time.Now(), name: a.kind}
	c.opts = []framework.CreateOption{
		framework.Ephemeral(), framework.Protected(), framework.WithParents(), framework.StatTo(&a.stat),
	}
	if a.write == nil {
		c.opts = append(c.opts, framework.Sequential())
	} else {
		c.name += a.writeNode().digits()
	}
	if along {
		c.opts = append(c.opts, framework.ListTo(&c.names))
	}
	if a.queue.ACL != nil {
		c.opts = append(c.opts, framework.WithACL(a.queue.ACL...))
	}
	return c
}

// created notes the node that the creation has made at the path.
func (a *Attempt) created(path string, c *creation) {
	_, name := framework.SplitPath(path)
	a.node, a.fresh, a.listed, a.took = path, true, c.names, time.Since(c.begun)
	a.self, _ = parse(name, a.queue.Kinds) // it has the name that was asked for
	clientAttemptsOf(a.client).add(a.self.Name)
}

// AddNodes creates n nodes in another queue of the same client, in the grant's session, all or none.
// It returns the nodes as grants, whatever other nodes exist there. names are those of all children
// of that directory, read after the nodes were created; nil if they are still to be listed.
func (g *Grant) AddNodes(
	ctx context.Context, q *Queue, n int, data []byte,
) (added []*Grant, names []string, err error) {
	attempts, creates := make([]*Attempt, n), make([]framework.TxnOp, n)
	creations := make([]*creation, n)
	for i := range n {
		attempts[i] = q.NewAttempt(q.Kinds[0], nil)
		creations[i] = attempts[i].creation(i == 0)
		creates[i] = framework.OpCreate(framework.JoinPath(q.Dir, creations[i].name), data, creations[i].opts...)
	}
	paths := make([]string, n)
	if n == 1 {
		paths[0], err = g.Client.Create(ctx, framework.JoinPath(q.Dir, creations[0].name), data, creations[0].opts...)
	} else {
		paths, err = g.Client.CreateAll(ctx, creates...)
	}
	if err != nil {
		return nil, nil, err
	}
	for i, path := range paths {
		znode := hold.Znode{Client: g.Client, Session: g.Session, Path: path, Stat: attempts[i].stat}
		added = append(added, &Grant{Znode: znode})
	}
	return added, creations[0].names, nil
}

// position returns where the attempt's node is. A node that is not listed is gone: the listing is
// no older than the node, because the session that created the node has read it.
func (a *Attempt) position(ctx context.Context) (position, error) {
	nodes, err := a.list(ctx)
	if err != nil {
		return position{}, err
	}
	own := Index(nodes, a.self.Name)
	switch {
	case own < 0:
		return position{}, errGone
	case a.write != nil:
		return position{ahead: own}, a.checkWriteNode(nodes)
	}
	return a.queue.position(nodes, own), nil
}

// list returns the queue, as listed along with the creation of the node or of another attempt's, or
// by a listing that the attempt shares. The first one may have been on its way before, if it
// contains the node. Later ones are sent after the event that made the attempt list again.
func (a *Attempt) list(ctx context.Context) ([]Node, error) {
	fresh, names := a.fresh, a.listed
	a.fresh, a.listed = false, nil
	if names != nil {
		return a.queue.ordered(ctx, a.client, names)
	}
	if fresh {
		most := 2 * a.took // a listing that was sent meanwhile takes about as long
		nodes, err := listingsOf(a.client).listedAlong(ctx, a.key, a.queue, a.self.Name, most)
		if nodes != nil || err != nil {
			return nodes, err
		}
	}
	queue, key := *a.queue, a.key
	if !fresh { // a contender of the refused kind that came later does not end the wait
		queue.Refused, key.refused = "", ""
	}
	ask := func(ctx context.Context) ([]Node, error) { return queue.list(ctx, a.client) }
	return listingsOf(a.client).list(ctx, key, ask, func(nodes []Node) bool {
		return fresh && Index(nodes, a.self.Name) >= 0
	})
}
