package proto

import "math"

// IsSession reports whether the owner in a znode's Stat is a session, so that the znode is ephemeral: not 0, as that of
// a persistent znode, and not what servers give to containers and TTL znodes, but to no session. The sessions of a
// server with a number of 128 or more are negative.
func IsSession(owner int64) bool {
	return owner != 0 && owner != math.MinInt64 && uint64(owner)>>56 != 0xff
}
