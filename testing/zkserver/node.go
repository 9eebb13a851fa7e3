package zkserver

import "github.com/docent-go/docent/internal/proto"

// A node is a znode. Its data and acl are never changed in place, so that they can
// be shared with replies, records and clones.
type node struct {
	data     []byte
	acl      []acl
	children map[string]struct{}

	// stat's cversion counts the creations of children only, as the sequence
	// numbers of new children need it; its dataLength and numChildren are unused.
	stat proto.Stat
}

// shown returns the stat as clients see it: cversion counts deletions too, and only
// sessions are owners.
func (n *node) shown() proto.Stat {
	s := n.stat
	s.DataLength = int32(len(n.data))
	s.NumChildren = int32(len(n.children))
	s.Cversion = s.Cversion*2 - s.NumChildren
	if kindOf(s.EphemeralOwner) != ownerSession {
		s.EphemeralOwner = 0
	}
	return s
}

func (n *node) addChild(name string) {
	if n.children == nil {
		n.children = map[string]struct{}{}
	}
	n.children[name] = struct{}{}
}
