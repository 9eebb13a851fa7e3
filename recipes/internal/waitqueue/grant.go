package waitqueue

import "github.com/docent-go/docent/recipes/internal/hold"

// A Grant is a znode of the queue that was granted.
type Grant struct {
	hold.Znode
	Beside *Grant // that it continues, see [Queue.NewAttemptBeside]; or nil
}

// Fence returns a number that grows from grant to grant: the czxid of the node.
// One beside another has that one's number: its own may be greater than that of
// nodes which stood behind when it was created, and are granted later.
func (g *Grant) Fence() int64 {
	if g.Beside != nil {
		return g.Beside.Fence()
	}
	return g.Znode.Fence()
}
