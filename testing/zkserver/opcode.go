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

// A createMode is what the flags of a create request ask for.
type createMode struct {
	ephemeral, sequential, container, ttl bool
}

// modeOf decodes flags and reports whether they are known.
func modeOf(flags int32) (mode createMode, known bool) {
	const ephemeralSequential = proto.FlagEphemeral | proto.FlagSequential
	return createMode{
		ephemeral:  flags == proto.FlagEphemeral || flags == ephemeralSequential,
		sequential: flags == proto.FlagSequential || flags == ephemeralSequential || flags == proto.FlagTTLSequential,
		container:  flags == proto.FlagContainer,
		ttl:        flags == proto.FlagTTL || flags == proto.FlagTTLSequential,
	}, flags >= 0 && flags <= proto.FlagTTLSequential
}
