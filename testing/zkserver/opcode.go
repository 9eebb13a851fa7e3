package zkserver

import "github.com/docent-go/docent/internal/proto"

// isWrite reports whether the operation goes through the leader and takes a zxid,
// even when it fails.
func isWrite(op proto.Opcode) bool {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpDeleteContainer,
		proto.OpSetData, proto.OpSetACL, proto.OpCheck, proto.OpMulti, proto.OpReconfig, proto.OpCloseSession, proto.OpCreateSession:
		return true
	}
	return false
}

// isKnown reports whether the server has the operation.
func isKnown(op proto.Opcode) bool {
	switch op {
	case proto.OpExists, proto.OpGetData, proto.OpGetACL, proto.OpGetChildren, proto.OpSync, proto.OpPing, proto.OpGetChildren2, proto.OpCheckWatches,
		proto.OpRemoveWatches, proto.OpMultiRead, proto.OpAuth, proto.OpSetWatches, proto.OpGetEphemerals, proto.OpCountChildren,
		proto.OpSetWatches2, proto.OpAddWatch, proto.OpWhoAmI:
		return true
	case proto.OpCreateSession, proto.OpDeleteContainer:
		return false // the server's own
	}
	return isWrite(op)
}

// isCreate reports whether the operation creates a node.
func isCreate(op proto.Opcode) bool {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return true
	}
	return false
}

// Flags of a create request that only a server has to know.
const (
	flagPersistent          int32 = 0
	flagEphemeralSequential       = proto.FlagEphemeral | proto.FlagSequential
)

// A createMode is what the flags of a create request ask for.
type createMode struct {
	ephemeral, sequential, container, ttl bool
}

// modeOf decodes flags and reports whether they are known.
func modeOf(flags int32) (createMode, bool) {
	switch flags {
	case flagPersistent:
		return createMode{}, true
	case proto.FlagEphemeral:
		return createMode{ephemeral: true}, true
	case proto.FlagSequential:
		return createMode{sequential: true}, true
	case flagEphemeralSequential:
		return createMode{ephemeral: true, sequential: true}, true
	case proto.FlagContainer:
		return createMode{container: true}, true
	case proto.FlagTTL:
		return createMode{ttl: true}, true
	case proto.FlagTTLSequential:
		return createMode{ttl: true, sequential: true}, true
	}
	return createMode{}, false
}
