// Package division divides keys among members: equally, and so that few keys move when a member comes
// or goes.
package division

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"slices"
)

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

// Digest returns what tells a set of keys from others, whatever their order. A key has no slash.
func Digest(keys []string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(slices.Values(keys)) {
		h.Write([]byte(key + "/")) // keys have no slash
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
