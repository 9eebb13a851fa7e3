package hold

import (
	"time"

	"github.com/docent-go/docent/framework"
)

// A Znode is an ephemeral znode that was granted, in a session that is bound to its deadline. Whoever
// has it deletes the znode and ends the session hold.
type Znode struct {
	Client  *framework.Client // bound to the session
	Session *framework.SessionHold
	Path    string
	Stat    framework.Stat
	Breaks  int64            // of the connection when the grant was certain: see [framework.SessionHold.Breaks]
	Own     *framework.Watch // a watch on the znode; nil if there was no need to wait
}

// Node returns the znode's path.
func (z *Znode) Node() string { return z.Path }

// Fence returns the czxid.
func (z *Znode) Fence() int64 { return z.Stat.Czxid }

// Guard returns a check that the znode exists.
func (z *Znode) Guard() framework.TxnOp {
	return framework.OpCheck(z.Path, framework.AnyVersion)
}

// Deadline returns the deadline of the session.
func (z *Znode) Deadline() time.Time { return z.Session.Deadline() }

// Err returns why the session is over, or nil.
func (z *Znode) Err() error { return z.Session.Err() }

// OnLost has fn called when the session is over.
func (z *Znode) OnLost(fn func(error)) { z.Session.OnLost(fn) }
