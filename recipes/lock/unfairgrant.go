package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// An unfairGrant is the grant of an unfair mutex: the znode at its path. Its epoch distinguishes it
// from the znodes of other holders.
type unfairGrant struct {
	hold.Znode
	epoch int32
	gate  *gate
}

// Guard returns a check of the epoch, because the znodes of all holders have one name.
func (g *unfairGrant) Guards() []framework.TxnOp {
	return []framework.TxnOp{framework.OpAtEpoch(g.Path, g.epoch)}
}

// Release deletes the znode.
func (g *unfairGrant) Release(ctx context.Context) error {
	err := g.Client.Delete(ctx, g.Path, append(g.which(), framework.Guaranteed())...)
	return opError("release", g.Path, contender.ReleaseError(g.Path, g.Session, err))
}

// Discard deletes the znode in the background.
func (g *unfairGrant) Discard() {
	g.Client.Discard(g.Path, g.which()...)
	g.Session.Release()
}

// which returns options that delete only the granted znode. The gate opens when the znode is gone.
// Until then the client must not create another one, because it could not distinguish the two after
// a lost reply.
func (g *unfairGrant) which() []framework.DeleteOption {
	return []framework.DeleteOption{
		framework.AtEpoch(g.epoch), framework.CreatedBy(g.Stat.Czxid), framework.WhenOver(func(bool) { g.gate.leave() }),
	}
}
