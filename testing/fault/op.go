package fault

import "strconv"

// An Op is a kind of frame that a [Rule] can name. It is coarser than the
// protocol's opcode: whatever creates a node is a [Create].
type Op int

// The kinds of frames. Multi is the transaction as a whole; the operations in it
// are each a [Part] of it, as the reads in a MultiRead are. Connect is the handshake that opens or resumes a session,
// Event a watch event, which the server sends unasked.
const (
	Create        Op = iota + 1 // create, create2, createContainer, createTTL
	Delete                      // delete, deleteContainer
	Exists                      // exists
	GetData                     // getData
	SetData                     // setData
	GetACL                      // getACL
	SetACL                      // setACL
	GetChildren                 // getChildren, getChildren2
	Sync                        // sync
	Ping                        // ping
	Check                       // check
	Multi                       // multi
	CloseSession                // closeSession
	SetAuth                     // auth
	SetWatches                  // setWatches, setWatches2
	AddWatch                    // addWatch
	RemoveWatches               // checkWatches, removeWatches
	MultiRead                   // multiRead
	Other                       // any other request
	Connect                     // the handshake
	Event                       // a watch event
)

// OpOf returns the kind of request of an opcode on the wire. It returns [Other] for an opcode that
// has no kind of its own.
func OpOf(opcode int32) Op {
	switch opcode {
	case 1, 15, 19, 21:
		return Create
	case 2, 20:
		return Delete
	case 3:
		return Exists
	case 4:
		return GetData
	case 5:
		return SetData
	case 6:
		return GetACL
	case 7:
		return SetACL
	case 8, 12:
		return GetChildren
	case 9:
		return Sync
	case 11:
		return Ping
	case 13:
		return Check
	case 14:
		return Multi
	case 17, 18:
		return RemoveWatches
	case 22:
		return MultiRead
	case 100:
		return SetAuth
	case 101, 105:
		return SetWatches
	case 106:
		return AddWatch
	case -11:
		return CloseSession
	}
	return Other
}

// String returns the name of the constant, such as "GetData".
func (o Op) String() string {
	names := [...]string{
		Create: "Create", Delete: "Delete", Exists: "Exists", GetData: "GetData", SetData: "SetData",
		GetACL: "GetACL", SetACL: "SetACL", GetChildren: "GetChildren", Sync: "Sync", Ping: "Ping",
		Check: "Check", Multi: "Multi", CloseSession: "CloseSession", SetAuth: "SetAuth",
		SetWatches: "SetWatches", AddWatch: "AddWatch", RemoveWatches: "RemoveWatches", MultiRead: "MultiRead", Other: "Other",
		Connect: "Connect", Event: "Event",
	}
	if !o.known() {
		return "Op(" + strconv.Itoa(int(o)) + ")"
	}
	return names[o]
}

func (o Op) known() bool { return o >= Create && o <= Event }

// hasPath reports whether frames of this kind carry a path to match.
func (o Op) hasPath() bool {
	switch o {
	case Ping, CloseSession, SetAuth, SetWatches, Connect:
		return false
	}
	return true
}

// unnamed reports whether a rule without an Op means frames of this kind too.
// Pings come whenever the client is idle, and a rule that counts requests must
// not count them by accident.
func (o Op) unnamed() bool {
	return o != Ping && o != Connect && o != Event
}
