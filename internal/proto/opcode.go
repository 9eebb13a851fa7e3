package proto

// An Opcode names an operation.
type Opcode int32

// The opcodes (org.apache.zookeeper.ZooDefs.OpCode).
const (
	OpCreate          Opcode = 1
	OpDelete          Opcode = 2
	OpExists          Opcode = 3
	OpGetData         Opcode = 4
	OpSetData         Opcode = 5
	OpGetACL          Opcode = 6
	OpSetACL          Opcode = 7
	OpGetChildren     Opcode = 8
	OpSync            Opcode = 9
	OpPing            Opcode = 11
	OpGetChildren2    Opcode = 12
	OpCheck           Opcode = 13
	OpMulti           Opcode = 14
	OpCreate2         Opcode = 15
	OpReconfig        Opcode = 16
	OpCheckWatches    Opcode = 17
	OpRemoveWatches   Opcode = 18
	OpCreateContainer Opcode = 19
	OpDeleteContainer Opcode = 20
	OpCreateTTL       Opcode = 21
	OpMultiRead       Opcode = 22
	OpAuth            Opcode = 100
	OpSetWatches      Opcode = 101
	OpSASL            Opcode = 102
	OpGetEphemerals   Opcode = 103
	OpCountChildren   Opcode = 104 // getAllChildrenNumber: every descendant
	OpSetWatches2     Opcode = 105
	OpAddWatch        Opcode = 106
	OpWhoAmI          Opcode = 107
	OpError           Opcode = -1 // only among the results of a transaction
	OpCreateSession   Opcode = -10
	OpCloseSession    Opcode = -11
)

// Flags of a create.
const (
	FlagEphemeral     int32 = 1
	FlagSequential    int32 = 2
	FlagContainer     int32 = 4
	FlagTTL           int32 = 5
	FlagTTLSequential int32 = 6
)
