package tap

import "github.com/docent-go/docent/internal/proto"

// followTreeLocked takes note of a question that sets or removes a recursive watch. Up to
// ZooKeeper 3.8 a path has one kind of watch per connection, so a read of that path that
// left a watch would end the recursive one, and the recursive one ends those that were there
// (ZOOKEEPER-4466). From the moment at which the question is sent, reads of the path
// therefore leave none; the recursive watch notifies of what theirs would. It needs mu.
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

// hasTreeLocked reports whether a recursive watch on path is at the server, or on its
// way there. It needs mu.
func (t *Tap) hasTreeLocked(path []byte) bool {
	_, has := t.trees[string(path)]
	return has
}
