package fault

import "iter"

// A Frame is what rules are matched against: a request, a handshake or a watch
// event.
type Frame struct {
	// Session is the id of the session. In a Connect it is the session that the
	// client asks for, 0 for a new one.
	Session int64
	// Xid is the number that the client gave the request, negative for those that
	// the protocol numbers itself (pings -2, auth -4, setWatches -8) and for
	// events (-1). It is 0 for a Connect.
	Xid int32
	// Op is the kind of the frame.
	Op Op
	// Path is the path that the frame carries, as it is on the wire: before the
	// sequence number of a sequential create was added. It is empty where there
	// is none, and in a Multi.
	Path string
	// Parts are the operations of a Multi or a MultiRead, in order.
	Parts []Part
}

// A Part is one operation of a transaction or a multiRead.
type Part struct {
	Op   Op
	Path string
}

// paths yields every path that the frame carries.
func (f Frame) paths() iter.Seq[string] {
	return func(yield func(string) bool) {
		if f.Path != "" && !yield(f.Path) {
			return
		}
		for _, part := range f.Parts {
			if !yield(part.Path) {
				return
			}
		}
	}
}
