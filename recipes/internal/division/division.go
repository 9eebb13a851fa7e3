// Package division divides keys among members: equally, and so that few keys move when a member comes
// or goes.
package division

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// A Member takes part in the division of the keys that have the digest.
type Member struct{ ID, Digest string }

// Share returns the keys of the member with the id, in their order. They are divided among the members
// that have the digest of the keys.
func Share(keys []string, members []Member, id string) []string {
	digest := Digest(keys)
	var ids []string
	for _, m := range members {
		if m.Digest == digest {
			ids = append(ids, m.ID)
		}
	}
	share := Divide(keys, ids)[id]
	slices.Sort(share)
	return share
}

// Divide returns the keys of each member. It depends on nothing but the two sets. Each member gets as
// many keys as the others, or one more. A key goes to the member whose score for it is the highest
// among those that have room.
func Divide(keys, members []string) map[string][]string {
	type pair struct {
		score       uint64
		key, member int32
	}
	pairs := make([]pair, 0, len(keys)*len(members))
	hashes := make([]uint64, len(keys))
	for k, key := range keys {
		hashes[k] = hash(key)
	}
	for m, member := range members {
		seed := mix(hash(member))
		for k := range keys {
			pairs = append(pairs, pair{mix(hashes[k] ^ seed), int32(k), int32(m)}) //nolint:gosec // far fewer
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(keys[a.key], keys[b.key]), cmp.Compare(members[a.member], members[b.member]))
	})
	shares := make(map[string][]string, len(members))
	given := make([]bool, len(keys))
	least, more := 0, 0 // keys of each member, and how many members have one more
	if len(members) > 0 {
		least, more = len(keys)/len(members), len(keys)%len(members)
	}
	for _, p := range pairs {
		member := members[p.member]
		has := len(shares[member])
		if given[p.key] || has > least || has == least && more == 0 {
			continue
		}
		if has == least {
			more--
		}
		given[p.key], shares[member] = true, append(shares[member], keys[p.key])
	}
	return shares
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
