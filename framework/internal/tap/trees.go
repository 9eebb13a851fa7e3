package tap

import "github.com/docent-go/docent/internal/proto"

// followTreeLocked records a question that sets or removes a recursive watch. Up to ZooKeeper 3.8 a
// path has one kind of watch per connection (ZOOKEEPER-4466). A read that left a watch on that path
// would end the recursive watch, and the recursive watch ends the existing watches. So once the
// question is sent, reads of the path leave no watch. The recursive watch notifies of the same
// changes. It needs mu.
func (t *Tap) followTreeLocked(q *question, opcode proto.Opcode, body []byte) {
	path, _, ok := readString(body)
	switch {
	case !ok:
	case opcode == proto.OpAddWatch:
		q.tree = string(path)
		t.trees[q.tree] = struct{}{}
	case opcode == proto.OpRemoveWatches:
		delete(t.trees, string(path))
	}
}

// hasTreeLocked reports whether the server has a recursive watch on path, or whether one is being
// set. It needs mu.
func (t *Tap) hasTreeLocked(path []byte) bool {
	_, has := t.trees[string(path)]
	return has
}
