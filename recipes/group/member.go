package group

import (
	"slices"

	"github.com/docent-go/docent/recipes/cache"
)

// A Member is one znode of a group. Its data is shared and must not be changed.
type Member struct {
	ID   string
	Data []byte

	czxid, mzxid int64
}

// membersOf returns the members in the snapshot, in the order of their ids.
func (g *Group) membersOf(s *cache.Snapshot) []Member {
	var members []Member
	for id, n := range s.Children(g.path) {
		members = append(members, Member{id, n.Data, n.Stat.Czxid, n.Stat.Mzxid})
	}
	return members
}

// same reports whether nothing has changed from a to b.
func same(a, b []Member) bool {
	return slices.EqualFunc(a, b, func(a, b Member) bool {
		return a.ID == b.ID && a.czxid == b.czxid && a.mzxid == b.mzxid
	})
}
