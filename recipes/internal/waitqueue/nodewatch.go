package waitqueue

import (
	"errors"

	"github.com/docent-go/docent/framework"
)

// A nodeWatch is the node with the name, "" for none, and a watch on it. It is a data watch, as
// Curator's, because that leaves nothing at the server if the node does not exist.
type nodeWatch struct {
	name  string
	watch *framework.Watch // nil while there is none
	gone  bool             // the node was gone when the watch was to be set
}

// deleted reports whether the node is known to be gone.
func (w *nodeWatch) deleted() bool {
	return w.gone || w.watch != nil && w.watch.Event() == framework.EventDeleted
}

// unseen reports whether the watch has fired because the server may have dropped an event.
func (w *nodeWatch) unseen() bool {
	return w.watch != nil && w.watch.Event() == framework.EventUnseen
}

// fired returns a channel that is closed when the watch fires; nil if there is no watch.
func (w *nodeWatch) fired() <-chan struct{} {
	if w.watch == nil {
		return nil
	}
	return w.watch.Fired()
}

// retarget makes w the watch of the node with the name, and reports whether that watch has to be
// set. A watch of the same node is kept if it has not fired, or has fired for the node's deletion.
func (w *nodeWatch) retarget(name string) (missing bool) {
	if w.name == name && w.watch != nil && (w.watch.Event() == 0 || w.watch.Event() == framework.EventDeleted) {
		return false
	}
	w.close()
	w.name = name
	return name != ""
}

// set takes over the watch, or the error of the request for it. A node that is gone is no error.
func (w *nodeWatch) set(watch *framework.Watch, err error) error {
	if errors.Is(err, framework.ErrNoNode) {
		w.gone = true
		return nil
	}
	if err == nil {
		w.watch = watch
	}
	return err
}

func (w *nodeWatch) close() {
	if w.watch != nil {
		w.watch.Close()
	}
	*w = nodeWatch{}
}
