package zkserver

// An opcode names an operation on the wire.
type opcode int32

const (
	opCreate          opcode = 1
	opDelete          opcode = 2
	opExists          opcode = 3
	opGetData         opcode = 4
	opSetData         opcode = 5
	opGetACL          opcode = 6
	opSetACL          opcode = 7
	opGetChildren     opcode = 8
	opSync            opcode = 9
	opPing            opcode = 11
	opGetChildren2    opcode = 12
	opCheck           opcode = 13
	opMulti           opcode = 14
	opCreate2         opcode = 15
	opCheckWatches    opcode = 17
	opRemoveWatches   opcode = 18
	opCreateContainer opcode = 19
	opDeleteContainer opcode = 20
	opCreateTTL       opcode = 21
	opMultiRead       opcode = 22
	opAuth            opcode = 100
	opSetWatches      opcode = 101
	opGetEphemerals   opcode = 103
	opCountChildren   opcode = 104 // getAllChildrenNumber: every descendant
	opSetWatches2     opcode = 105
	opAddWatch        opcode = 106
	opWhoAmI          opcode = 107
	opCreateSession   opcode = -10
	opCloseSession    opcode = -11
	opError           opcode = -1 // in the results of a multi
)

// isWrite reports whether the operation goes through the leader and takes a zxid,
// also when it fails.
func (o opcode) isWrite() bool {
	switch o {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opDeleteContainer,
		opSetData, opSetACL, opCheck, opMulti, opCloseSession, opCreateSession:
		return true
	}
	return false
}

// isKnown reports whether the server has the operation.
func (o opcode) isKnown() bool {
	switch o {
	case opExists, opGetData, opGetACL, opGetChildren, opSync, opPing, opGetChildren2, opCheckWatches,
		opRemoveWatches, opMultiRead, opAuth, opSetWatches, opGetEphemerals, opCountChildren,
		opSetWatches2, opAddWatch, opWhoAmI:
		return true
	case opCreateSession, opDeleteContainer:
		return false // the server's own
	}
	return o.isWrite()
}

// isCreate reports whether the operation creates a node.
func (o opcode) isCreate() bool {
	switch o {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		return true
	}
	return false
}

// Flags of a create request. The values are the protocol's.
const (
	flagPersistent          int32 = 0
	flagEphemeral           int32 = 1
	flagSequential          int32 = 2
	flagEphemeralSequential int32 = 3
	flagContainer           int32 = 4
	flagTTL                 int32 = 5
	flagTTLSequential       int32 = 6
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
	case flagEphemeral:
		return createMode{ephemeral: true}, true
	case flagSequential:
		return createMode{sequential: true}, true
	case flagEphemeralSequential:
		return createMode{ephemeral: true, sequential: true}, true
	case flagContainer:
		return createMode{container: true}, true
	case flagTTL:
		return createMode{ttl: true}, true
	case flagTTLSequential:
		return createMode{ttl: true, sequential: true}, true
	}
	return createMode{}, false
}
