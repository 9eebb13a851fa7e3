package waitqueue

import (
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
)

// A watched is the node with the name, "" for none, and a watch on it. Data
// watches are used, as by Curator: they leave nothing behind on a node that does
// not exist.
type watched struct {
	name  string
	watch *framework.Watch // nil while there is none
	gone  bool             // the node was gone when the watch was to be set
}

// deleted reports whether the node is known to be gone.
func (one *watched) deleted() bool {
	return one.gone || one.watch.Event() == framework.EventDeleted
}

// fired returns a channel that never delivers where there is no watch.
func (one *watched) fired() <-chan struct{} {
	if one.watch == nil {
		return nil
	}
	return one.watch.Fired()
}

// turn turns to the node with the name and reports whether a watch on it is to be
// set. One that stands is kept, and so is one that has told of the node's end.
func (one *watched) turn(name string) (missing bool) {
	if one.name == name && one.watch != nil && (one.watch.Event() == 0 || one.watch.Event() == framework.EventDeleted) {
		return false
	}
	one.close()
	one.name = name
	return name != ""
}

// set takes over the watch, or what came in its place. A node that is gone is no error.
func (one *watched) set(watch *framework.Watch, err error) error {
	if ctxerr.Is(err, framework.ErrNoNode) {
		one.gone = true
		return nil
	}
	if err == nil {
		one.watch = watch
	}
	return err
}

func (one *watched) close() {
	if one.watch != nil {
		one.watch.Close()
	}
	*one = watched{}
}
