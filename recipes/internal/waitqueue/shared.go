package waitqueue

// SharedPredecessor returns the Predecessor of a queue in which contenders of the kind write hold the
// lock alone, and all others share it. A writer waits for the node before it. A reader waits for the
// nearest writer ahead. A writer of the reader's own number has the same owner, who held the write
// side when it took the read side. At the end of the counter several nodes have one number, and no
// owner of the write side gets the read side.
func SharedPredecessor(write string) func(nodes []Node, own, before int) int {
	return func(nodes []Node, own, before int) int {
		if nodes[own].Kind == write {
			return before - 1
		}
		for i := before - 1; i >= 0; i-- {
			if nodes[i].Kind == write && (nodes[i].Sequence != nodes[own].Sequence || nodes[i].Overflowed()) {
				return i
			}
		}
		return -1
	}
}
