package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/internal/ctxerr"

	"github.com/docent-go/docent/framework/internal/tap"
)

// A WatchKind says what a [Watch] looks at.
type WatchKind int

// The kinds of watches.
const (
	// WatchData tells that a znode's data changed or that it was deleted. The
	// znode has to exist.
	WatchData WatchKind = iota + 1
	// WatchExists tells that a znode was created, changed or deleted. It leaves a
	// watch on the server for a path that does not exist, which stays until
	// the znode is created or the connection ends.
	WatchExists
	// WatchChildren tells that a child was created or deleted, or that the znode
	// was deleted. The znode has to exist.
	WatchChildren
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
	EventCreated EventKind = iota + 1
	EventDeleted
	EventChanged
	EventChildrenChanged
	// EventReconnected means that the connection was away: what is watched may
	// have changed in the meantime.
	EventReconnected
	// EventSessionEnded means that the session is over.
	EventSessionEnded
)

// String returns the kind's name, as in "deleted".
func (k EventKind) String() string {
	names := [...]string{"created", "deleted", "changed", "children changed", "reconnected", "session ended"}
	if k < 1 || int(k) > len(names) {
		return fmt.Sprintf("EventKind(%d)", int(k))
	}
	return names[k-1]
}

// A Watch tells once that what it watches has changed, or may have: then the
// caller reads again, with a new Watch if it wants to know of more. Its methods
// may be called concurrently.
type Watch struct {
	registry *watches
	key      watchKey
	fired    chan struct{} // closed once, with event set first
	event    EventKind
	found    nodeState
	cfg      *config
	after    func() // of AfterFire; guarded by registry.mu
}

// Watch reads the znode at path and watches it from that state on: a change
// after it fires the Watch, and so do a connection that was away, since the
// state may have changed unseen, and the session's end. Watches of one kind on one path share one
// watch at the server, which no number of abandoned ones adds to. It is retried by the client's policy
// until ctx ends; ctx does not bound the Watch, which has to be closed. Errors: [ErrNoNode]
// (with [WatchExists] a path without a znode is none), [ErrNoAuth], and those
// of every operation.
func (c *Client) Watch(ctx context.Context, path string, kind WatchKind) (*Watch, error) {
	key := watchKey{kind, c.fullPath(path)}
	if err := c.watchFault(kind, path, key.path); err != nil {
		return nil, opError("watch", path, err)
	}
	w, err := c.core.watch(ctx, request{op: "watch", path: key.path, session: c.session, repeat: repeatable}, key)
	return w, opError("watch", path, err)
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

// A beginning is a Watch whose read is on its way.
type beginning struct {
	watch  *Watch
	entry  *watchEntry
	disarm func()                     // nil where a watch stands at the server
	read   *pending[nodeState]        // nil where none is needed
	again  func() *pending[nodeState] // begins a read that is not shared
	shared bool                       // what is found may be told to others
	others bool                       // the read is another Watch's
}

// beginWatch registers before it reads, so that no event can come unnoticed.
// While a watch stands at the server, a plain read will do, and none is needed
// where shared says so and one has been made before, or is on its way.
func (s *session) beginWatch(key watchKey, ask func(*wire) (nodeState, error), shared bool) *beginning {
	w, entry, armed := s.watches.join(key)
	w.cfg = &s.core.cfg
	b := &beginning{watch: w, entry: entry, shared: shared}
	if armed && shared && s.watches.known(w, entry) {
		return b
	}
	b.again = func() *pending[nodeState] { return begin(s, ask) }
	if !armed {
		// Before it shares a read: that may not have been sent yet, and who began it
		// may give up.
		b.disarm = s.tap.Arm(key.kind.read(), key.path)
	}
	if armed || !shared {
		b.read = b.again()
		return b
	}
	var own bool
	b.read, own = s.watches.share(entry, b.again)
	b.others = !own
	return b
}

// wait returns the Watch once its read has been answered. What another one's read
// found missing may have come since, so that is looked for again.
func (b *beginning) wait(ctx context.Context) (*Watch, error) {
	if b.read == nil {
		return b.watch, nil
	}
	found, err := b.read.wait(ctx)
	if b.others && err != nil && ctx.Err() == nil && !Retryable(err) {
		found, err = b.again().wait(ctx)
	}
	if b.others {
		found = found.clone()
	}
	b.watch.found = found
	key := b.watch.key
	if key.kind == WatchExists && ctxerr.Is(err, ErrNoNode) {
		err = nil
	}
	b.end(err)
	if err != nil {
		b.watch.Close()
		return nil, err
	}
	return b.watch, nil
}

// end lets go of what kept the path armed, once what came of the read is known to
// others: from then on nobody shares it.
func (b *beginning) end(err error) {
	registry := b.watch.registry
	if err == nil {
		var found *nodeState
		if b.shared {
			found = &b.watch.found
		}
		registry.setArmed(b.watch.key, b.entry, found)
	}
	if !b.others {
		registry.unshare(b.entry, b.read)
	}
	if b.disarm != nil {
		b.disarm()
	}
}

func (k WatchKind) read() tap.Read {
	switch k {
	case WatchExists:
		return tap.ReadExists
	case WatchChildren:
		return tap.ReadChildren
	default:
		return tap.ReadData
	}
}

func (key watchKey) ask(w *wire) (nodeState, error) {
	switch key.kind {
	case WatchExists:
		return w.exists(key.path)
	case WatchChildren:
		return w.children(key.path)
	default:
		return w.get(key.path)
	}
}

// Fired returns a channel that is closed when the Watch fires.
func (w *Watch) Fired() <-chan struct{} { return w.fired }

// AfterFire has fn called on a goroutine of its own once the Watch has fired: for who
// has nothing to do until then. It is called at once if that has happened, and not any
// more once stop has returned true; stop returns false where it came too late, and
// when it is called again. There is one fn at a time.
func (w *Watch) AfterFire(fn func()) (stop func() bool) {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	if w.Event() != 0 {
		go fn() // ends, and is waited for, as the caller of AfterFire has it
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

// Stat returns the Stat that the znode had when the Watch was set, and whether
// there was a znode.
func (w *Watch) Stat() (Stat, bool) { return w.found.stat, w.found.exists }

// Data returns the data that a znode watched by [WatchData] had when the Watch
// was set. Of a client [WithCompression] it returns what is not compressed as it
// is: a Watch tells of changes, whoever made them. [Client.Get] refuses that.
func (w *Watch) Data() []byte {
	if data, err := w.cfg.unpack(w.found.data); err == nil {
		return data
	}
	return w.found.data
}

// Children returns the names of the children that a znode watched by
// [WatchChildren] had when the Watch was set.
func (w *Watch) Children() []string { return w.found.children }

// Close ends the interest: the Watch will not fire any more. It may be called
// several times.
func (w *Watch) Close() { w.registry.leave(w) }
