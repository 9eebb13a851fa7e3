package zkserver

// A node is a znode. Its data and acl are never changed in place, so that they can
// be shared with replies, records and clones.
type node struct {
	data     []byte
	acl      []acl
	children map[string]struct{}

	// stat's cversion counts the creations of children only, as the sequence
	// numbers of new children need it; its dataLength and numChildren are unused.
	stat stat
}

// shown returns the stat as clients see it: cversion counts deletions too, and only
// sessions are owners.
func (n *node) shown() stat {
	s := n.stat
	s.dataLength = int32(len(n.data))
	s.numChildren = int32(len(n.children))
	s.cversion = s.cversion*2 - s.numChildren
	if kindOf(s.ephemeralOwner) != ownerSession {
		s.ephemeralOwner = 0
	}
	return s
}

func (n *node) addChild(name string) {
	if n.children == nil {
		n.children = map[string]struct{}{}
	}
	n.children[name] = struct{}{}
}
