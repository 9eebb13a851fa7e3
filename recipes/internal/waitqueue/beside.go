package waitqueue

import "github.com/docent-go/docent/framework"

// NewAttemptBeside returns an attempt for the owner of a grant, to hold the lock
// in a further way and maybe longer: it does not wait. Its node has the number of
// the granted one, so it stands ahead of all that queue behind that, and is not
// sequential: the format is Curator's for a writer that takes the read lock. Should
// the granted node be gone before both were seen to stand, the attempt queues as
// others do.
func (q *Queue) NewAttemptBeside(granted *Grant, kind string, data func() []byte) *Attempt {
	a := q.NewAttempt(kind, data)
	a.beside = granted
	return a
}

// besideNode returns the node that the attempt's is to stand beside.
func (a *Attempt) besideNode() Node {
	_, name := framework.SplitPath(a.beside.Path)
	node, _ := parse(name, a.queue.Kinds) // what was granted is a contender
	return node
}

// checkBeside returns nil if the node that the attempt's stands beside is among
// the nodes: then both stood at one moment, so nobody behind them was granted
// before. Otherwise a successor may have been, before the node was put ahead of
// it; so the node goes.
func (a *Attempt) checkBeside(nodes []Node) error {
	if Index(nodes, a.besideNode().Name) >= 0 {
		return nil
	}
	return errGone
}
