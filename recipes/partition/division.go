package partition

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
)

// A member takes part in the division of the keys that have the digest.
type member struct{ id, digest string }

// share returns the keys of the member with the id, in their order. They are divided among the members
// that have the digest of the keys.
func share(keys []string, members []member, id string) []string {
	digest := digestOf(keys)
	var ids []string
	for _, m := range members {
		if m.digest == digest {
			ids = append(ids, m.id)
		}
	}
	share := divide(keys, ids)[id]
	slices.Sort(share)
	return share
}

// divide returns the keys of each member. It depends on nothing but the two sets. Each member gets as
// many keys as the others, or one more. A key goes to the member whose score for it is the highest
// among those that have room. Alternatives were worse: rendezvous hashing without room makes shares of 100
// keys differ by 40; a replay of the joins in their order moves three times as many further keys; and an
// assignment that one member writes makes all others wait for it.
func divide(keys, members []string) map[string][]string {
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

// maxKeys bounds the keys: each one is a znode, and a goroutine of its server.
const maxKeys = 10_000

// keyFaults returns what prevents that the keys are divided.
func keyFaults(keys []string) (faults []error) {
	if len(keys) == 0 || len(keys) > maxKeys {
		return []error{fmt.Errorf("%d keys: must be from 1 to %d", len(keys), maxKeys)}
	}
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if err := framework.ValidatePath("/" + key); key == "" || strings.Contains(key, "/") || err != nil {
			faults = append(faults, fmt.Errorf("key %q: must not be empty or contain a slash, and must be a name of a znode", errtype.Shortened(key)))
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
