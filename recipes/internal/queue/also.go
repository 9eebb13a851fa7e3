package queue

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
)

// Also gives the granted's session a node in another queue, of the same client. It returns
// the node as a grant, whoever else stands there, and the names of all children of that
// directory, read after the node was created; none where they are still to be listed.
func (g *Grant) Also(ctx context.Context, q *Queue, data []byte) (also *Grant, names []string, err error) {
	a := q.NewAttempt(q.Kinds[0], func() []byte { return data })
	a.hold, a.client = g.Hold, g.Client
	defer a.unbook()
	c, err := a.create(ctx)
	if err != nil {
		return nil, nil, err
	}
	also = &Grant{Client: a.client, Hold: a.hold, Node: a.node, Stat: a.stat, key: a.book().key, self: a.self}
	if c.names == nil && c.plan.awaits == nil && a.book().alone(a.self) {
		return also, []string{a.self.Name}, nil
	}
	return also, c.names, nil
}

// EnterBoth has two attempts that have not entered do so by one transaction, if the directories
// of both are known to be free: should somebody have come all the same, the second one's node stands there
// for a moment. It returns the grants of both, with one hold, where each came as the only
// one. Otherwise it returns none, the second has been withdrawn, and the first may have entered.
func EnterBoth(ctx context.Context, first, second *Attempt) (grants []*Grant, err error) {
	defer func() {
		if grants == nil {
			second.Withdraw()
		}
	}()
	both := []*Attempt{first, second}
	if _, err := bindAll(ctx, both); err != nil {
		return nil, err
	}
	if !first.book().free() || !second.book().free() {
		return nil, nil
	}
	switch err := EnterAll(ctx, both); {
	case ctxerr.Is(err, framework.ErrTooLarge):
		return nil, nil // one after the other they may fit
	case err != nil:
		return nil, err
	}
	if !first.book().alone(first.self) || !second.book().alone(second.self) {
		return nil, nil
	}
	if err := first.hold.Secure(ctx); err != nil {
		return nil, err
	}
	second.hold.Release()
	second.hold = first.hold
	return []*Grant{first.grant(), second.grant()}, nil
}
