package framework

import (
	"context"
	"errors"
	"fmt"
)

// A Change is what happened to one znode.
type Change struct {
	Path string    // of the znode, in the client's view
	Kind EventKind // EventCreated, EventChanged, EventDeleted or EventUnseen
}

// A TreeWatch notifies of every change of a znode and of all znodes below it, until it is
// closed: see [Client.WatchTree]. One goroutine at a time may call Next; Close may be
// called by any.
type TreeWatch struct {
	client *Client
	path   string        // as the ensemble knows it
	ready  chan struct{} // closed when the watch is valid for the first time
	news   chan struct{} // capacity 1: there is something for Next

	// guarded by the mu of client.core.trees
	unread []Change
	met    bool  // ready is closed
	err    error // why it is over
}

// WatchTree watches the znode at path and everything below it, whether it exists or not,
// until the TreeWatch is closed. It waits until the watch is valid: a change that is made
// after WatchTree returned is notified. If ctx ends first, the error wraps ctx's, and
// [ErrNotConnected] if there was no connection. TreeWatches of one path share one watch at the
// server. A TreeWatch outlives connections and sessions. Servers of ZooKeeper 3.8.4, 3.9.2 and
// newer do not notify of a znode that the client may not read. Servers older than ZooKeeper 3.6
// have no such watches: the error wraps [ErrUnsupported].
func (c *Client) WatchTree(ctx context.Context, path string) (*TreeWatch, error) {
	full := c.fullPath(path)
	if err := errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full))); err != nil {
		return nil, opError("watch tree", path, err)
	}
	w := &TreeWatch{client: c, path: full, ready: make(chan struct{}), news: make(chan struct{}, 1)}
	c.core.trees.join(w)
	c.core.wakeSession()
	if err := w.await(ctx); err != nil {
		w.Close()
		return nil, callError(ctx, "watch tree", path, err)
	}
	return w, nil
}

// await waits until the watch is valid.
func (w *TreeWatch) await(ctx context.Context) error {
	core := w.client.core
	for {
		select {
		case <-w.ready:
			return nil
		case <-w.news: // it is over
			if _, err := core.trees.take(w); err != nil {
				return err
			}
		case <-core.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			if core.presentState() != Connected {
				return fmt.Errorf("%w: %w", ctx.Err(), core.notConnected())
			}
			return ctx.Err()
		}
	}
}

// Next waits for the next changes and returns them in their order. What a server notified of
// before it answered a request is here before that request returns. If the connection
// was away, changes may have been missed: Next then returns a Change of kind [EventUnseen],
// with the path of the watch, once the watch is valid again; the caller has to read all of it
// again. It does so, too, if more changes waited than are kept. If ctx ends first, the
// error wraps ctx's. It is [ErrClosed] once the TreeWatch or the client is closed, and wraps
// [ErrUnsupported] if the client came to a server that is too old: the TreeWatch is over then.
func (w *TreeWatch) Next(ctx context.Context) ([]Change, error) {
	core := w.client.core
	for {
		changes, err := core.trees.take(w)
		if len(changes) > 0 {
			return changes, nil
		}
		if err == nil {
			select {
			case <-w.news:
				continue
			case <-core.ctx.Done():
				err = ErrClosed
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		return nil, callError(ctx, "next change", w.client.viewPath(w.path), err)
	}
}

// Valid reports whether the connection that the watch is set on has not been lost, and the
// TreeWatch is not over. If that connection is lost, the TreeWatch becomes invalid before any
// request is sent on the next one. When it is valid again, the Change of kind [EventUnseen] is
// there for Next. So if Valid returns true after a request was answered, every change that the
// answer can show is there for Next, or an EventUnseen is.
func (w *TreeWatch) Valid() bool { return w.client.core.trees.valid(w) }

// Close ends the TreeWatch. The server is told to forget the watch if no other TreeWatch of
// the client is on the path. It may be called several times.
func (w *TreeWatch) Close() {
	w.client.core.trees.leave(w)
	w.client.core.wakeSession()
}

// wakeSession has the present session look at what is to be done.
func (c *core) wakeSession() {
	if s := c.current(); s != nil {
		s.wake()
	}
}
