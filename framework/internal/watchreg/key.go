// Package watchreg keeps the watches of one session. Subscriptions of one kind on one path share one
// watch at the server. The package knows no connection: its owner makes the reads that set watches,
// and reports events, lost connections and the session's end.
//
// A server notifies once per watch and then forgets the watch. It forgets all watches when the
// connection ends. It sends the event of a change before it replies from the new state.
package watchreg

import "github.com/docent-go/docent/internal/proto"

// A Kind says which state a watch watches.
type Kind int

// The kinds of watches. Each has a kind of read that sets it.
const (
	Data Kind = iota + 1
	Exists
	Children
)

// An Event says why a Subscription fired.
type Event int

// The events. The first four are a server's, with the protocol's values.
const (
	Created Event = iota + 1
	Deleted
	Changed
	ChildrenChanged
	Reconnected // the watch's connection was lost, and maybe the session
	Unseen      // a later read showed a change without an event
)

// A Key identifies the watch that all Subscriptions of one kind on one path share.
type Key struct {
	Kind Kind
	Path string
}

// firedKinds returns the kinds of watches that a server's event ends.
func (e Event) firedKinds() []Kind {
	switch e {
	case Created:
		return []Kind{Exists}
	case Changed:
		return []Kind{Data, Exists}
	case ChildrenChanged:
		return []Kind{Children}
	default:
		return kinds()
	}
}

// kinds are all kinds of watches.
func kinds() []Kind { return []Kind{Data, Exists, Children} }

// A mark is the part of a znode's state that a watch of one kind watches. It is zero if there is no
// znode.
type mark struct{ created, changed int64 }

func (k Kind) mark(found *proto.Node) mark {
	if k == Children {
		return mark{found.Stat.Czxid, found.Stat.Pzxid}
	}
	return mark{found.Stat.Czxid, found.Stat.Mzxid}
}
