package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A Watch tells once that what it watches has changed, or may have: then the
// caller reads again, with a new Watch if it wants to know of more. Its methods
// may be called concurrently.
type Watch struct {
	registry *watches
	entry    *watchEntry
	fired    chan struct{} // closed once, with event set first
	event    EventKind
	found    *nodeState // Watches of one entry share it, so it is never changed
	cfg      *config
	after    func() // of AfterFire; guarded by registry.mu
}

// Watch reads the znode at path and watches it from that state on: a change
// after it fires the Watch, and so do a connection that was away, since the
// state may have changed unseen, and the session's end. Watches of one kind on one path share one
// watch at the server, which no number of abandoned ones adds to. If a server filtered an event
// because the session could not read the znode, the next Watch of the path sets the watch again and
// fires the others with [EventUnseen]. It is retried by the client's policy
// until ctx ends; ctx does not bound the Watch, which has to be closed. Errors: [ErrNoNode]
// (with [WatchExists] a path without a znode is none), [ErrNoAuth], and those
// of every operation.
func (c *Client) Watch(ctx context.Context, path string, kind WatchKind) (*Watch, error) {
	key := watchKey{kind, c.fullPath(path)}
	if err := c.watchFault(kind, path, key.path); err != nil {
		return nil, opError("watch", path, err)
	}
	w, err := c.core.watch(ctx, request{op: "watch", path: key.path, session: c.session, repeat: repeatable, reads: true}, key)
	return w, callError(ctx, "watch", path, err)
}

// watchFault returns all that is wrong with a watch of the path, full in full.
func (c *Client) watchFault(kind WatchKind, path, full string) error {
	if kind < WatchData || kind > WatchChildren {
		return fmt.Errorf("kind %v: must be WatchData, WatchExists or WatchChildren", kind)
	}
	return errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full)))
}

func (c *core) watch(ctx context.Context, rq request, key watchKey) (*Watch, error) {
	return do(ctx, c, rq, func(ctx context.Context, s *session) (*Watch, error) {
		return s.beginWatch(key, key.ask, false).wait(ctx)
	})
}

// Fired returns a channel that is closed when the Watch fires.
func (w *Watch) Fired() <-chan struct{} { return w.fired }

// AfterFire has fn called on a goroutine of its own once the Watch has fired: for who
// has nothing to do until then. It is called at once if that has happened, and not any
// more once stop has returned true; stop returns false where it came too late, and
// when it is called again. There is one fn at a time. A panic of fn is logged.
func (w *Watch) AfterFire(fn func()) (stop func() bool) {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	if w.Event() != 0 {
		w.registry.spawn(fn) // ends, and is waited for, as the caller of AfterFire has it
		return func() bool { return false }
	}
	w.after = fn
	return func() bool {
		w.registry.mu.Lock()
		defer w.registry.mu.Unlock()
		stopped := w.after != nil
		w.after = nil
		return stopped
	}
}

// Event returns why the Watch fired, and 0 before it has.
func (w *Watch) Event() EventKind {
	select {
	case <-w.fired:
		return w.event
	default:
		return 0
	}
}

// Valid reports whether the Watch has neither fired nor been closed, and the connection that it was
// set on has not been lost. If that connection is lost, the Watch becomes invalid before any request
// is sent on the next one, and fires later. A server sends the event of a change before it answers
// from the new state. So no reply shows a change that a valid Watch would notify of, unless the
// server filtered the event because the session could not read the znode at that moment.
func (w *Watch) Valid() bool { return w.registry.valid(w) }

// Stat returns the Stat that the znode had when the Watch was set, and whether
// there was a znode.
func (w *Watch) Stat() (Stat, bool) { return w.found.stat, w.found.exists }

// Data returns a copy of the data that a znode watched by [WatchData] had when the Watch
// was set. Of a client [WithCompression] it returns what is not compressed as it
// is: a Watch tells of changes, whoever made them. [Client.Get] refuses that.
func (w *Watch) Data() []byte {
	data, err := w.cfg.unpack(w.found.data)
	if err != nil {
		data = w.found.data
	}
	return slices.Clone(data)
}

// Children returns a copy of the names of the children that a znode watched by
// [WatchChildren] had when the Watch was set.
func (w *Watch) Children() []string { return slices.Clone(w.found.children) }

// Close ends the interest: the Watch will not fire any more. It may be called
// several times.
func (w *Watch) Close() { w.registry.leave(w) }
