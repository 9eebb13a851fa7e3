package fault

import "strconv"

// A Code is the error code of a reply that a server gives by itself, without asking the
// leader: what a [Refuse] answers. Such a reply proves nothing about the leader.
type Code int32

// The codes, by the name that they have in ZooKeeper (KeeperException.Code). The server
// closes the connection after the three that say so.
const (
	Unimplemented Code = -6   // the server doesn't know the request; it closes the connection
	NoAuth        Code = -102 // enableEagerACLCheck: the server checked the ACL of a write itself
	InvalidACL    Code = -114 // enableEagerACLCheck: the same of an ACL that a request brings
	AuthFailed    Code = -115 // the server doesn't accept a credential; it closes the connection
	NotReadOnly   Code = -119 // the server has no leader and serves reads only
	AuthRequired  Code = -124 // the server requires a credential; it closes the connection
	Throttled     Code = -127 // the server sheds load: the request waited for too long
)

// Closes reports whether the server closes the connection after the reply.
func (c Code) Closes() bool { return c == Unimplemented || c == AuthFailed || c == AuthRequired }

// Zxid returns the zxid in the reply's header, where last is that of the last transaction
// which the server has applied.
func (c Code) Zxid(last int64) int64 {
	switch c {
	case Throttled, NotReadOnly:
		return last
	case Unimplemented:
		return -1
	}
	return 0
}

// String returns the name of the constant, such as "Throttled".
func (c Code) String() string {
	if name := c.name(); name != "" {
		return name
	}
	return "Code(" + strconv.Itoa(int(c)) + ")"
}

func (c Code) known() bool { return c.name() != "" }

func (c Code) name() string {
	return map[Code]string{
		Unimplemented: "Unimplemented", NoAuth: "NoAuth", InvalidACL: "InvalidACL", AuthFailed: "AuthFailed",
		NotReadOnly: "NotReadOnly", AuthRequired: "AuthRequired", Throttled: "Throttled",
	}[c]
}

// answers reports whether servers answer requests of kind o with the code.
func (c Code) answers(o Op) bool {
	switch c {
	case NoAuth, InvalidACL:
		return o == Create || o == Delete || o == SetData || o == SetACL
	case AuthFailed:
		return o == SetAuth
	case NotReadOnly:
		switch o {
		case Create, Delete, SetData, SetACL, Sync, Check, Multi:
			return true
		}
		return false
	case AuthRequired:
		return o != SetAuth && o != Connect && o != Event
	}
	return o != SetAuth && o != Ping && o != CloseSession && o != Connect && o != Event
}
