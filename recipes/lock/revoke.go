package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/args"
)

// Revoke asks the contender whose znode is at path to release the lock, or not to keep it once it
// is granted. [lease.Participant.Path] and [lease.Lease.Node] have the path. A contender of a lock with
// recipes.WithRevocation, or Curator's makeRevocable, is notified, and may ignore the request. Revoke
// returns once the request is made. If the znode is gone already, it returns nil, because the
// contender has left the queue.
//
// The request replaces the znode's data, and so its metadata. If the znode is not ephemeral, such
// as the directory of a lock's contenders, Revoke leaves it alone and names it in the error. If ctx
// ends first, the error wraps ctx's, and the request may have been made. Other errors are
// [framework.ErrNoAuth], and those of every operation of the client. Revoke may be called
// concurrently.
func Revoke(ctx context.Context, c *framework.Client, path string) error {
	if err := errors.Join(args.Client(c), framework.ValidatePath(path)); err != nil {
		return recipe.Error(c, "revoke", path, err)
	}
	err := request(ctx, c, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return recipe.CallError(ctx, c, "revoke", path, err)
}

func request(ctx context.Context, c *framework.Client, path string) error {
	st, ok, err := c.Exists(ctx, path)
	if err != nil {
		return err
	}
	if ok && st.EphemeralOwner == 0 {
		return errors.New("it is no contender's znode, since it is not ephemeral")
	}
	_, err = c.Set(ctx, path, []byte(queuenode.RevokeMark), framework.AnyVersion, framework.Idempotent()) // even if a lagging server showed no data
	return err
}
