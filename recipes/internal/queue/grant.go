package queue

import "github.com/docent-go/docent/framework"

// A Grant is a node of the queue that was granted, in a secured session. Who
// has it deletes the node and releases the hold in the end.
type Grant struct {
	Client *framework.Client // bound to the session
	Hold   *framework.SessionHold
	Node   string // path of the node
	Stat   framework.Stat
	Breaks int64            // of the connection when the grant was certain: see [framework.SessionHold.Breaks]
	Own    *framework.Watch // a watch on the node; nil if there was no need to wait
	Beside *Grant           // that it continues, see [Queue.NewAttemptBeside]; or nil
}

// Fence returns a number that grows from grant to grant: the czxid of the node.
// One beside another has that one's number: its own may be greater than that of
// nodes which stood behind when it was created, and are granted later.
func (g *Grant) Fence() int64 {
	if g.Beside != nil {
		return g.Beside.Fence()
	}
	return g.Stat.Czxid
}
