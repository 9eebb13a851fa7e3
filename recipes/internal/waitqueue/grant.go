package waitqueue

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// A Grant is a znode of the queue that was granted.
type Grant struct {
	hold.Znode
	Write *Grant // of the write side, if this is a downgrade; else nil
}

// Fence returns a number that grows from grant to grant: the czxid of the node. A downgrade has the
// fence of its write grant. The czxid of its own node may be greater than that of nodes behind it,
// which are granted later.
func (g *Grant) Fence() int64 {
	if g.Write != nil {
		return g.Write.Fence()
	}
	return g.Znode.Fence()
}

// secure makes the grant certain. Breaks of the connection count from then on, also while a
// function of the user's is notified of the grant.
func (a *Attempt) secure(ctx context.Context) error {
	err := a.hold.Secure(ctx)
	a.breaks = a.hold.Breaks()
	return err
}

// grant ends the attempt and returns its grant.
func (a *Attempt) grant() *Grant {
	g := &Grant{
		Znode: hold.Znode{Client: a.client, Session: a.hold, Path: a.node, Stat: a.stat, Breaks: a.breaks},
		Write: a.write,
	}
	g.Own = a.endWait()
	clientAttemptsOf(a.client).remove(a.self.Name, true)
	return g
}

// NewDowngrade returns an attempt of the write grant's owner, who takes the read side, too, and may
// hold it longer. It does not wait: its node has the number of the write node, so it is ahead of
// all nodes behind that one. It is not sequential, as Curator's node of a writer that takes the
// read lock. If the write node is gone before both nodes were listed, the attempt queues as others
// do.
func (q *Queue) NewDowngrade(write *Grant, kind string, data func() []byte) *Attempt {
	a := q.NewAttempt(kind, data)
	a.write = write
	return a
}

// writeNode returns the node of the write grant.
func (a *Attempt) writeNode() queuenode.Node {
	_, name := framework.SplitPath(a.write.Path)
	node, _ := queuenode.Parse(name, a.queue.Kinds) // what was granted is a contender
	return node
}

// checkWriteNode returns nil if the write node is among the nodes: then it and the attempt's node
// existed at one moment, so no contender behind them was granted before. Otherwise a successor may
// hold the lock, and checkWriteNode returns errGone, so that the attempt's node is deleted.
func (a *Attempt) checkWriteNode(nodes []queuenode.Node) error {
	if queuenode.Index(nodes, a.writeNode().Name) >= 0 {
		return nil
	}
	return errGone
}
