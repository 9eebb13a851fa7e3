package zkserver

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
