package zkserver

import (
	"github.com/docent-go/docent/internal/proto"
)

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

// Owners that are no session. A TTL node's carries its time to live in the low
// five bytes, in milliseconds.
const (
	containerOwner = int64(-1) << 63
	ttlOwner       = int64(-1) << 56
	maxTTL         = int64(1)<<40 - 1
)

// An ownerKind says what an ephemeralOwner means.
type ownerKind int

const (
	ownerNone ownerKind = iota + 1
	ownerSession
	ownerContainer
	ownerTTL
)

func kindOf(owner int64) ownerKind {
	switch {
	case owner == 0:
		return ownerNone
	case owner == containerOwner:
		return ownerContainer
	case owner&ttlOwner == ttlOwner:
		return ownerTTL
	}
	return ownerSession
}

// reapable reports whether the server removes the node by itself.
func (k ownerKind) reapable() bool { return k == ownerContainer || k == ownerTTL }
