package partition

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/cache"
)

// A settlement has the members among whom the keys were last divided: the creation of each one's znode,
// by its id, for each digest of keys. It is the data of the members' directory, so that all members have
// the same one, whenever each of them came. They need it to know which keys are served: those of the
// members in it whose znodes still exist. All others have no server, and move at once.
type settlement map[string]ids

// ids are members: the czxid of each one's znode, by its id.
type ids map[string]int64

// A view is what a snapshot shows of the members.
type view struct {
	present settlement // the members that there are
	settled settlement
	version int32 // of settled
	fault   error // why settled can't be known
}

// viewOf returns the view that the snapshot of the members' directory shows. A znode that belongs to no
// session is no member: it would not go with its process.
func viewOf(s *cache.Snapshot, dir string) view {
	v := view{present: make(settlement)}
	for id, n := range s.Children(dir) {
		if !proto.IsSession(n.Stat.EphemeralOwner) {
			continue
		}
		digest := string(unpacked(n.Data, maxDigest))
		if v.present[digest] == nil {
			v.present[digest] = make(ids)
		}
		v.present[digest][id] = n.Stat.Czxid
	}
	top, _ := s.Get(dir)
	if v.version = top.Stat.Version; len(top.Data) > 0 {
		if err := json.Unmarshal(unpacked(top.Data, maxSettlement), &v.settled); err != nil {
			v.settled, v.fault = nil, fmt.Errorf("the data is no settlement: %w", err)
		}
	}
	return v
}

// same reports whether the two views differ in nothing.
func (v view) same(other view) bool {
	return v.version == other.version && v.present.equal(other.present) && v.settled.equal(other.settled)
}

func (s settlement) equal(other settlement) bool {
	return maps.EqualFunc(s, other, maps.Equal[ids, ids])
}

// next returns the data that settles the members that have the digest. Other members stay as they were
// settled, unless all with their digest are gone.
func (v view) next(digest string) []byte {
	next := make(settlement)
	for other, settled := range v.settled {
		if len(v.present[other]) > 0 {
			next[other] = settled
		}
	}
	next[digest] = v.present[digest]
	data, _ := json.Marshal(next) // maps of numbers and texts
	return packed(data)
}

// peers are the members with the same keys.
type peers struct{ present, settled ids }

func (v view) peers(digest string) peers { return peers{v.present[digest], v.settled[digest]} }

// unsettled reports whether the members are others than those among whom the keys were last divided.
func (p peers) unsettled() bool { return !maps.Equal(p.present, p.settled) }

// remaining returns the settled members that are still there, in their order.
func (p peers) remaining() (all []string) {
	for id, czxid := range p.settled {
		if now, there := p.present[id]; there && now == czxid {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

// halved reports whether at least half of the settled members are gone, or there were none. Then the
// keys are divided at once: those who remain have about twice their keys already.
func (p peers) halved() bool { return 2*len(p.remaining()) <= len(p.settled) }

// A divider knows the keys of one member. It divides them again only if that may change something.
type divider struct {
	keys, among []string
	shares      map[string][]string // of keys among the members
}

// share returns the keys of the member with the id, in their order. The keys of a settled member that is
// there are its own. Each key of one that is gone goes to the settled member that has the highest score
// for it, so that it moves again only when that one is gone, too, or all keys are divided.
func (d *divider) share(p peers, id string) []string {
	if p.halved() {
		return d.divide(p.present)[id]
	}
	remaining, shares := p.remaining(), d.divide(p.settled)
	var mine []string
	for member, keys := range shares {
		_, there := slices.BinarySearch(remaining, member)
		switch {
		case there && member == id:
			mine = append(mine, keys...)
		case !there:
			mine = append(mine, inherited(keys, remaining, id)...)
		}
	}
	slices.Sort(mine)
	return mine
}

// divide returns the keys of each of the members, in their order.
func (d *divider) divide(members ids) map[string][]string {
	among := slices.Sorted(maps.Keys(members))
	if d.shares == nil || !slices.Equal(among, d.among) {
		d.among, d.shares = among, divide(d.keys, among)
		for _, keys := range d.shares {
			slices.Sort(keys)
		}
	}
	return d.shares
}
