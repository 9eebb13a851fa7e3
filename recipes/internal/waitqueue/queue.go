// Package waitqueue is the queue of ephemeral sequential znodes that fair locks
// stand in: who has the lowest number has the lock, and each waiter watches the
// one that it waits for. Formats and order are Apache Curator's
// (org.apache.curator.framework.recipes.locks.LockInternals and
// StandardLockInternalsDriver), so that its processes can stand in one queue with
// ours; what it leaves open is settled here: whose session a node belongs to,
// that it stands at the moment of the grant, and that it goes when nobody wants
// it any more.
package waitqueue

import (
	"context"
	"errors"

	"github.com/docent-go/docent/internal/ctxerr"

	"github.com/docent-go/docent/framework"
)

// A Queue is a directory of contenders. It is immutable.
type Queue struct {
	Client *framework.Client
	Dir    string
	Kinds  []string        // the kinds of contenders, as in "lock-", none the end of another
	ACL    []framework.ACL // of contenders and missing parents; nil for the client's

	// Ahead returns which of the nodes before the index the one at own waits for, -1 for none.
	Ahead func(nodes []Node, own, before int) int

	Place func(position int) // told how many stand ahead of a waiting attempt; nil for nobody

	// Heirs reports whether gone, when it left, can have left another node in its
	// place that waiting has to wait for; nil for never. All other nodes come
	// behind those that exist.
	Heirs func(gone, waiting Node) bool
}

// Next is the Ahead of a queue whose first contender alone has the lock.
func Next(_ []Node, _, before int) int { return before - 1 }

// ErrBusy is returned by [Attempt.Try] when somebody else has the lock.
var ErrBusy = errors.New("waitqueue: busy")

// List returns the contenders in order, none if the directory does not exist.
func (q *Queue) List(ctx context.Context) ([]Node, error) {
	return q.list(ctx, q.Client)
}

func (q *Queue) list(ctx context.Context, c *framework.Client) ([]Node, error) {
	names, _, err := c.Children(ctx, q.Dir)
	if ctxerr.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return q.ordered(ctx, c, names)
}

// ordered returns the contenders among the names of the directory's children, in order.
func (q *Queue) ordered(ctx context.Context, c *framework.Client, names []string) ([]Node, error) {
	return q.settle(ctx, c, Sort(names, q.Kinds...))
}
