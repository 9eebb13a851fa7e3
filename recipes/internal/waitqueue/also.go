package waitqueue

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// Also gives the granted's session a node in another queue, of the same client. It returns
// the node as a grant, whoever else has one there, and the names of all children of that
// directory, read after the node was created; none where they are still to be listed.
func (g *Grant) Also(ctx context.Context, q *Queue, data []byte) (also *Grant, names []string, err error) {
	a := q.NewAttempt(q.Kinds[0], nil)
	c := a.creation(true)
	node, err := g.Client.Create(ctx, framework.JoinPath(q.Dir, c.name), data, c.opts...)
	if err != nil {
		return nil, nil, err
	}
	also = &Grant{Znode: hold.Znode{Client: g.Client, Session: g.Session, Path: node, Stat: a.stat}}
	return also, c.names, nil
}
