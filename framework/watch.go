package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/internal/usercall"
)

// A Watch notifies once that the watched state has changed, or may have changed. Then the caller
// reads again; a new Watch notifies of the next change. Its methods may be called concurrently.
type Watch struct {
	sub watchreg.Subscription
	cfg *config
}

// Watch reads the znode at path and watches it from that state on. The Watch fires at a change
// after that state, and at the session's end. It also fires if the connection is lost, because the
// state may change unseen. Watches of one kind on one path share one watch at the server, and
// closed Watches add none.
//
// A server filters an event if the session may not read the znode. The next Watch of the path then
// sets the watch again and fires the others with [EventUnseen].
//
// Watch is retried by the client's policy until ctx ends. ctx does not bound the Watch, which the
// caller has to close. Errors: [ErrNoNode] (not with [WatchExists]), [ErrNoAuth], and the errors of
// every operation.
func (c *Client) Watch(ctx context.Context, path string, kind WatchKind) (*Watch, error) {
	key := watchreg.Key{Kind: watchreg.Kind(kind), Path: c.fullPath(path)}
	if err := c.watchFault(kind, path, key.Path); err != nil {
		return nil, opError("watch", path, err)
	}
	w, err := c.core.watch(ctx, request{op: "watch", path: key.Path, session: c.session, repeat: repeatable, reads: true}, key)
	return w, callError(ctx, "watch", path, err)
}

// watchFault returns all faults of a watch of the path; full is the path in the ensemble.
func (c *Client) watchFault(kind WatchKind, path, full string) error {
	if kind < WatchData || kind > WatchChildren {
		return fmt.Errorf("kind %v: must be WatchData, WatchExists or WatchChildren", kind)
	}
	return errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full)))
}

func (c *core) watch(ctx context.Context, rq request, key watchreg.Key) (*Watch, error) {
	return do(ctx, c, rq, func(ctx context.Context, s *session.Session) (*Watch, error) {
		return c.beginWatch(s, key, readOf(key), false).wait(ctx)
	})
}

// Fired returns a channel that is closed when the Watch fires.
func (w *Watch) Fired() <-chan struct{} { return w.sub.Fired() }

// AfterFire calls fn on a goroutine of its own once the Watch has fired, so that no goroutine has
// to wait. If the Watch has fired already, fn is called at once. If stop returns true, fn is not
// called. stop returns false if fn was started before, and from its second call on. There is one fn
// at a time. A panic of fn is logged.
func (w *Watch) AfterFire(fn func()) (stop func() bool) {
	usercall.Require("fn", fn != nil)
	return w.sub.AfterFire(fn)
}

// Event returns why the Watch fired; it is 0 before that.
func (w *Watch) Event() EventKind { return EventKind(w.sub.Event()) }

// Valid reports whether the Watch has neither fired nor been closed, and the connection that it was
// set on has not been lost. If that connection is lost, the Watch becomes invalid before any
// request is sent on the next connection, and fires later. A server sends the event of a change
// before it replies from the new state. So no reply shows a change of which a valid Watch would
// notify, with one exception: the server filters the event if the session may not read the znode at
// that moment.
func (w *Watch) Valid() bool { return w.sub.Valid() }

// Stat returns the Stat that the znode had when the Watch was set, and whether there was a znode.
func (w *Watch) Stat() (Stat, bool) {
	found := w.sub.Found()
	return statOf(found.Stat), found.Exists
}

// Data returns a copy of the data that a znode watched by [WatchData] had when the Watch was set.
// If the client has [WithCompression], Data returns uncompressed data unchanged, because a Watch
// notifies of every change. [Client.Get] refuses such data.
func (w *Watch) Data() []byte {
	packed := w.sub.Found().Data
	data, err := w.cfg.unpack(packed)
	if err != nil {
		data = packed
	}
	return slices.Clone(data)
}

// Children returns a copy of the names of the children that a znode watched by [WatchChildren] had
// when the Watch was set.
func (w *Watch) Children() []string { return slices.Clone(w.sub.Found().Children) }

// Close ends the Watch: it will not fire any more. It may be called several times.
func (w *Watch) Close() { w.sub.Close() }
