package framework

import (
	"fmt"

	"github.com/docent-go/docent/framework/internal/watchreg"
)

// A WatchKind says which state a [Watch] watches.
type WatchKind int

// The kinds of watches.
const (
	// WatchData notifies that a znode's data changed or that the znode was deleted. The znode has
	// to exist.
	WatchData = WatchKind(watchreg.Data)
	// WatchExists notifies that a znode was created, changed or deleted. If the path does not
	// exist, the watch stays on the server until the znode is created or the connection ends.
	WatchExists = WatchKind(watchreg.Exists)
	// WatchChildren notifies that a child was created or deleted, or that the znode was deleted.
	// The znode has to exist.
	WatchChildren = WatchKind(watchreg.Children)
)

// String returns the kind's name, as in "data".
func (k WatchKind) String() string {
	switch k {
	case WatchData:
		return "data"
	case WatchExists:
		return "exists"
	case WatchChildren:
		return "children"
	}
	return fmt.Sprintf("WatchKind(%d)", int(k))
}

// An EventKind says why a [Watch] fired.
type EventKind int

// The reasons for which a watch fires.
const (
	EventCreated         = EventKind(watchreg.Created)
	EventDeleted         = EventKind(watchreg.Deleted)
	EventChanged         = EventKind(watchreg.Changed)
	EventChildrenChanged = EventKind(watchreg.ChildrenChanged)
	// EventReconnected means that the connection was lost: the watched state may have changed
	// since.
	EventReconnected = EventKind(watchreg.Reconnected)
	// EventSessionEnded means that the session is over.
	EventSessionEnded = EventKind(watchreg.SessionEnded)
	// EventUnseen means that changes may have been missed. A Watch fires with it if a later read
	// shows a change whose event the server dropped. [TreeWatch.Next] returns it, too.
	EventUnseen = EventKind(watchreg.Unseen)
)

// String returns the kind's name, as in "deleted".
func (k EventKind) String() string {
	names := [...]string{"created", "deleted", "changed", "children changed", "reconnected", "session ended", "unseen"}
	if k < 1 || int(k) > len(names) {
		return fmt.Sprintf("EventKind(%d)", int(k))
	}
	return names[k-1]
}
