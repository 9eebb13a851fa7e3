package partition

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/args"
)

// divide returns the keys of each member. It depends on nothing but the two sets. Each member gets as
// many keys as the others, or one more. A key goes to the member whose score for it is the highest
// among those that have room. Alternatives were worse: rendezvous hashing without room makes shares of 100
// keys differ by 40; a replay of the joins in their order moves three times as many further keys; and an
// assignment that one member writes makes all others wait for it.
//
// The pairs of a key and a member have to be looked at from the highest score down. Few of them decide,
// so divide sorts those alone: the highest ones first, and then lower ones of what is left.
func divide(keys, members []string) map[string][]string {
	d := newDivision(keys, members)
	for above := uint64(math.MaxUint64); len(d.open) > 0 && len(d.withRoom) > 0; {
		from := uint64(0)
		if n := uint64(len(d.withRoom)); n > pairsPerKey {
			from = above - above/n*pairsPerKey
		}
		for _, p := range d.pairs(from, above) {
			d.give(p)
		}
		d.open = slices.DeleteFunc(d.open, func(k int32) bool { return d.given[k] })
		d.withRoom = slices.DeleteFunc(d.withRoom, func(m int32) bool { return !d.hasRoom(m) })
		above = from - 1
	}
	return d.shares
}

// pairsPerKey is how many pairs of a key are looked at together, on average.
const pairsPerKey = 4

// A division is the state of divide.
type division struct {
	keys, members []string
	hashes, seeds []uint64 // of keys and of members
	shares        map[string][]string
	given         []bool
	open          []int32 // keys that have not been given
	withRoom      []int32 // members that have room
	least, more   int     // keys of each member, and how many members may have one more
}

// A pair is of a key and a member, by their indices.
type pair struct {
	score       uint64
	key, member int32
}

func newDivision(keys, members []string) *division {
	d := &division{keys: keys, members: members, shares: make(map[string][]string, len(members)), given: make([]bool, len(keys))}
	for k, key := range keys {
		d.hashes, d.open = append(d.hashes, hash(key)), append(d.open, int32(k)) //nolint:gosec // far fewer
	}
	for m, member := range members {
		d.seeds, d.withRoom = append(d.seeds, mix(hash(member))), append(d.withRoom, int32(m)) //nolint:gosec // far fewer
	}
	if len(members) > 0 {
		d.least, d.more = len(keys)/len(members), len(keys)%len(members)
	}
	return d
}

// pairs returns the pairs that can still be given and have scores of the range, the highest score first.
func (d *division) pairs(from, to uint64) (all []pair) {
	for _, m := range d.withRoom {
		for _, k := range d.open {
			if score := mix(d.hashes[k] ^ d.seeds[m]); from <= score && score <= to {
				all = append(all, pair{score, k, m})
			}
		}
	}
	slices.SortFunc(all, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(d.keys[a.key], d.keys[b.key]), cmp.Compare(d.members[a.member], d.members[b.member]))
	})
	return all
}

func (d *division) hasRoom(m int32) bool {
	has := len(d.shares[d.members[m]])
	return has < d.least || has == d.least && d.more > 0
}

// give gives the key to the member, unless the key has been given or the member has no room.
func (d *division) give(p pair) {
	if d.given[p.key] || !d.hasRoom(p.member) {
		return
	}
	member := d.members[p.member]
	if len(d.shares[member]) == d.least {
		d.more--
	}
	d.given[p.key], d.shares[member] = true, append(d.shares[member], d.keys[p.key])
}

// inherited returns those of the keys for which the member with the id has the highest score.
func inherited(keys, members []string, id string) (all []string) {
	seeds := make([]uint64, len(members))
	for m, member := range members {
		seeds[m] = mix(hash(member))
	}
	for _, key := range keys {
		h, heir, most := hash(key), "", uint64(0)
		for m, member := range members {
			if score := mix(h ^ seeds[m]); heir == "" || score > most {
				heir, most = member, score
			}
		}
		if heir == id {
			all = append(all, key)
		}
	}
	return all
}

// hash is FNV-1a.
func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // it returns no error
	return h.Sum64()
}

// mix is the finalizer of MurmurHash3: each bit of x changes about half of the result's.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// maxKeys bounds the keys: each one is a znode, and a goroutine of its server.
const maxKeys = 10_000

// keyFaults returns what prevents that the keys are divided.
func keyFaults(keys []string) (faults []error) {
	if len(keys) == 0 || len(keys) > maxKeys {
		return []error{fmt.Errorf("%d keys: must be from 1 to %d", len(keys), maxKeys)}
	}
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if err := args.Element("key", key); err != nil {
			faults = append(faults, err)
		} else if seen[key] {
			faults = append(faults, fmt.Errorf("key %q: must be given once", errtype.Shortened(key)))
		}
		seen[key] = true
	}
	return faults
}

// digestOf returns what tells a set of keys from others, whatever their order.
func digestOf(keys []string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(slices.Values(keys)) {
		h.Write([]byte(key + "/")) // keys have no slash
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
