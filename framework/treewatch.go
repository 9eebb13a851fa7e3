package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/internal/usercall"
)

// A Change is one change of one znode.
type Change struct {
	Path string    // of the znode, in the client's view
	Kind EventKind // EventCreated, EventChanged, EventDeleted or EventUnseen
}

// A TreeWatch notifies of every change of a znode and of all znodes below it, until it is closed.
// [Client.WatchTree] returns it. One goroutine at a time may call Next; any goroutine may call
// Close.
type TreeWatch struct {
	client *Client
	tree   watchreg.Tree
}

// WatchTree watches the znode at path and everything below it, whether it exists or not, until the
// TreeWatch is closed. It waits until the watch is valid: the TreeWatch notifies of every change
// after WatchTree returned. If a server refuses the watch, WatchTree asks again each second. If ctx
// ends first, the error wraps ctx's error, and either [ErrNotConnected] if there was no connection,
// or the latest refusal, such as [ErrNoAuth].
//
// TreeWatches of one path share one watch at the server. A TreeWatch outlives connections and
// sessions. Servers of ZooKeeper 3.8.4, 3.9.2 and newer do not notify of a znode that the client
// may not read. Servers older than ZooKeeper 3.6 have no such watches: the error wraps
// [ErrUnsupported].
func (c *Client) WatchTree(ctx context.Context, path string) (*TreeWatch, error) {
	usercall.Require("ctx", ctx != nil)
	full := c.fullPath(path)
	if err := errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full))); err != nil {
		return nil, opError("watch tree", path, err)
	}
	w := &TreeWatch{client: c}
	c.core.trees.Join(&w.tree, full)
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
		case <-w.tree.Ready():
			return nil
		case <-w.tree.News(): // it has ended
			if _, err := core.trees.Take(&w.tree); err != nil {
				return err
			}
		case <-core.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			if core.presentState() != Connected {
				return fmt.Errorf("%w: %w", ctx.Err(), core.notConnected())
			}
			if refusal := core.trees.Refusal(&w.tree); refusal != nil {
				return fmt.Errorf("%w: %w", ctx.Err(), refusal)
			}
			return ctx.Err()
		}
	}
}

// Next waits for the next changes and returns them in their order. If a server notified of a change
// before it replied to a request, Next has the change before that request returns.
//
// If the connection was lost, changes may have been missed. Once the watch is valid again, Next
// returns a Change of kind [EventUnseen] with the path of the watch. The caller then has to read
// everything again. Next also returns such a Change if more changes waited than the client keeps.
//
// If ctx ends first, the error wraps ctx's error. It is [ErrClosed] once the TreeWatch or the
// client is closed, also if changes wait. It wraps [ErrUnsupported] if the client connected to a server that is too old;
// the TreeWatch has then ended.
func (w *TreeWatch) Next(ctx context.Context) ([]Change, error) {
	usercall.Require("ctx", ctx != nil)
	core := w.client.core
	for {
		changes, err := core.trees.Take(&w.tree)
		if err == nil && core.ctx.Err() != nil {
			err = ErrClosed
		}
		if len(changes) > 0 && err == nil {
			return w.viewed(changes), nil
		}
		if err == nil {
			select {
			case <-w.tree.News():
				continue
			case <-core.ctx.Done():
				err = ErrClosed
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		return nil, callError(ctx, "next change", w.client.viewPath(w.tree.Path()), err)
	}
}

// viewed returns the changes as the client's view has their paths.
func (w *TreeWatch) viewed(changes []watchreg.Change) []Change {
	all := make([]Change, len(changes))
	for i, change := range changes {
		all[i] = Change{Path: w.client.viewPath(change.Path), Kind: EventKind(change.Event)}
	}
	return all
}

// Valid reports whether the connection that the watch is set on has not been lost, and the
// TreeWatch has not ended. If that connection is lost, the TreeWatch becomes invalid before any
// request is sent on the next connection. When it is valid again, Next has a Change of kind
// [EventUnseen]. So if Valid returns true after a reply, Next has every change that the reply can
// show, or an EventUnseen.
func (w *TreeWatch) Valid() bool { return w.client.core.trees.Valid(&w.tree) }

// Close ends the TreeWatch. If no other TreeWatch of the client is on the path, the client removes
// the watch from the server. Close may be called several times.
func (w *TreeWatch) Close() {
	w.client.core.trees.Leave(&w.tree, ErrClosed)
	w.client.core.wakeSession()
}

// wakeSession makes the present session check its pending work.
func (c *core) wakeSession() {
	if s := c.current(); s != nil {
		s.Wake()
	}
}
