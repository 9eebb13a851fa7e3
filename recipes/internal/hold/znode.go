package hold

import (
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/loss"
)

// A Znode is a granted ephemeral znode, in a session that is bound to its deadline. Its owner
// deletes the znode and ends the session hold.
type Znode struct {
	Client  *framework.Client // bound to the session
	Session *framework.SessionHold
	Path    string
	Stat    framework.Stat
	Breaks  int64            // of the connection at the grant: see [framework.SessionHold.Breaks]
	Own     *framework.Watch // a watch on the znode; nil if the attempt did not wait
}

// Node returns the znode's path.
func (z *Znode) Node() string { return z.Path }

// Fence returns the czxid.
func (z *Znode) Fence() int64 { return z.Stat.Czxid }

// Guards returns a check that the znode exists.
func (z *Znode) Guards() []framework.TxnOp {
	return []framework.TxnOp{framework.OpCheck(z.Path, framework.AnyVersion)}
}

// Deadline returns the deadline of the session.
func (z *Znode) Deadline() time.Time { return z.Session.Deadline() }

// Err returns why the session is over, or nil.
func (z *Znode) Err() error { return z.Session.Err() }

// OnLost registers notify and after for the session's end.
func (z *Znode) OnLost(notify func(error), after func()) {
	z.Session.OnLoss(loss.Functions{Lose: notify, After: after})
}
