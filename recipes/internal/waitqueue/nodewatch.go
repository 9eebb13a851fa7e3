package waitqueue

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

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

// RecheckDelay returns how long a waiter relies on its watches before it checks whether they have
// missed an event: one to two session timeouts. If the session may not read the znode at the moment
// of an event, a server may drop the event together with the watch (ZooKeeper 3.8.4, 3.9.2).
func RecheckDelay(c *framework.Client) time.Duration {
	timeout := c.Session().Timeout
	if timeout <= 0 {
		timeout = framework.DefaultSessionTimeout // there is no session at the moment
	}
	return timeout + rand.N(timeout)
}

// AwaitFired returns nil when one of the watches, at most two, has fired or may have missed an event.
// It returns ctx's error if ctx ends first.
func AwaitFired(ctx context.Context, c *framework.Client, watches ...*framework.Watch) error {
	recheck := time.NewTimer(RecheckDelay(c))
	defer recheck.Stop()
	var second <-chan struct{}
	if len(watches) > 1 {
		second = watches[1].Fired()
	}
	select {
	case <-watches[0].Fired():
	case <-second:
	case <-recheck.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
