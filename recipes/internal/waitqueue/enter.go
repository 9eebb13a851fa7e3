package waitqueue

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
)

// errGone means that the attempt's node is no longer in the queue.
var errGone = errors.New("waitqueue: own node is gone")

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

// create creates the node. It lists along with the creation if not too many other attempts do.
func (a *Attempt) create(ctx context.Context) error {
	along, end := listingsOf(a.client).begin(a.key)
	defer end()
	c := a.creation(along)
	node, err := a.client.Create(ctx, framework.JoinPath(a.queue.Dir, c.name), a.data(), c.opts...)
	if err != nil {
		return err
	}
	a.created(node, c)
	return nil
}

// A creation is how an attempt's node is to be created.
type creation struct {
	name  string // without what framework and server add
	opts  []framework.CreateOption
	names []string // of the directory's children, if listed
}

func (a *Attempt) creation(along bool) *creation {
	c := &creation{name: a.kind}
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
	a.node, a.fresh, a.listed = path, true, c.names
	a.self, _ = parse(name, a.queue.Kinds) // it has the name that was asked for
	clientAttemptsOf(a.client).add(a.self.Name)
}
