package framework

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// A Watch notifies once that the watched state has changed, or may have changed. Then the caller
// reads again; a new Watch notifies of the next change. Its methods may be called concurrently.
type Watch struct {
	sub     watchreg.Subscription
	cfg     *config
	timeout time.Duration // of the session
}

// Watch reads the znode at path and watches it from that state on. The Watch fires at a change
// after that state, and at the session's end. It also fires if the connection is lost, because the
// state may change unseen. Watches of one kind on one path share one watch at the server, and
// closed Watches add none. Beyond a thousand paths without Watches, the client removes
// their watches from the server.
//
// A server filters an event if the session may not read the znode. The next Watch of the path then
// sets the watch again and fires the others with [EventUnseen].
//
// Watch is retried by the client's policy until ctx ends. ctx does not bound the Watch, which the
// caller has to close. Errors: [ErrNoNode] (not with [WatchExists]), [ErrNoAuth], and the errors of
// every operation.
func (c *Client) Watch(ctx context.Context, path string, kind WatchKind) (*Watch, error) {
	key, err := c.watchKey(kind, path)
	if err != nil {
		return nil, c.opError("watch", path, err)
	}
	w, err := c.core.watch(ctx, request{op: "watch", path: key.Path, session: c.session, reads: true}, key)
	return w, c.callError(ctx, "watch", path, err)
}

// watchKey returns the key of a watch of the path, or all faults of it.
func (c *Client) watchKey(kind WatchKind, path string) (watchreg.Key, error) {
	full, err := c.readPath(path)
	if kind < WatchData || kind > WatchChildren {
		err = fmt.Errorf("kind %v: must be WatchData, WatchExists or WatchChildren", kind)
	}
	return watchreg.Key{Kind: watchreg.Kind(kind), Path: full}, err
}

func (c *core) watch(ctx context.Context, rq request, key watchreg.Key) (*Watch, error) {
	return do(ctx, c, rq, func(ctx context.Context, s *session.Session) (*Watch, error) {
		by, _ := ctx.Deadline()
		return c.beginWatch(s, key, false, by).wait(ctx)
	})
}

// Fired returns a channel that is closed when the Watch fires.
func (w *Watch) Fired() <-chan struct{} { return w.sub.Fired() }

// Recheck fires the Watch with [EventUnseen] one to two session timeouts after the first call, if nothing
// fired it before. A server drops an event, and its watch too, if the session may not read the znode at that
// moment. So a caller that waits for an event alone calls Recheck, and reads again when the Watch fires.
func (w *Watch) Recheck() {
	w.sub.FireWithin(w.timeout+rand.N(w.timeout), watchreg.Unseen)
}

// Await calls [Watch.Recheck], and returns nil once the Watch has fired. If ctx ends first, Await
// returns ctx's error.
func (w *Watch) Await(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	w.Recheck()
	select {
	case <-w.Fired():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

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

// A WatchKind says which state a [Watch] watches.
type WatchKind int

// The kinds of watches.
const (
	// WatchData notifies that a znode's data changed or that the znode was deleted. The znode has
	// to exist.
	WatchData = WatchKind(watchreg.Data)
	// WatchExists notifies that a znode was created, changed or deleted. If the path does not
	// exist, the watch stays on the server until the znode is created, the connection ends, or the
	// client removes it.
	WatchExists = WatchKind(watchreg.Exists)
	// WatchChildren notifies that a child was created or deleted, or that the znode was deleted.
	// The znode has to exist.
	WatchChildren = WatchKind(watchreg.Children)
)

// String returns the kind's name, as in "data".
func (k WatchKind) String() string {
	names := [...]string{"data", "exists", "children"}
	if k < 1 || int(k) > len(names) {
		return fmt.Sprintf("WatchKind(%d)", int(k))
	}
	return names[k-1]
}

// An EventKind says why a [Watch] fired.
type EventKind int

// The reasons for which a watch fires.
const (
	EventCreated         = EventKind(watchreg.Created)
	EventDeleted         = EventKind(watchreg.Deleted)
	EventChanged         = EventKind(watchreg.Changed)
	EventChildrenChanged = EventKind(watchreg.ChildrenChanged)
	// EventReconnected means that the connection was lost, and maybe the session: the watched state may
	// have changed since.
	EventReconnected = EventKind(watchreg.Reconnected)
	// EventUnseen means that changes may have been missed. A Watch fires with it if a later read
	// shows a change whose event the server dropped, if an event of an earlier Watch arrives while it is
	// being set, after [Watch.Recheck], and when the TreeWatch of
	// its path that notified of the changes is closed. [TreeWatch.Next] returns it, too.
	EventUnseen = EventKind(watchreg.Unseen)
)

// String returns the kind's name, as in "deleted".
func (k EventKind) String() string {
	names := [...]string{"created", "deleted", "changed", "children changed", "reconnected", "unseen"}
	if k < 1 || int(k) > len(names) {
		return fmt.Sprintf("EventKind(%d)", int(k))
	}
	return names[k-1]
}

// A beginning is a Watch whose read is under way.
type beginning struct {
	key   watchreg.Key
	watch *Watch
	begun watchreg.Beginning
	err   error // of watchEach
}

// beginWatch begins a Watch by a read, as [watchreg.Registry.Begin] does. The caller leaves at by; zero is for
// never, or for a read that others may wait for.
func (c *core) beginWatch(s *session.Session, key watchreg.Key, shared bool, by time.Time) beginning {
	w := &Watch{cfg: &c.cfg, timeout: s.Timeout()}
	send := func(watch bool, answered func(*proto.Node)) watchreg.Read {
		rq := requests.Shared(readOf(key))
		rq.Watch, rq.By, rq.Answered = watch, by, answered
		return session.Begin(s, rq)
	}
	return beginning{key: key, watch: w, begun: s.Watches().Begin(&w.sub, key, send, shared)}
}

// wait returns the Watch once its read has been answered.
func (b beginning) wait(ctx context.Context) (*Watch, error) {
	if err := b.begun.Wait(ctx); err != nil {
		return nil, err
	}
	return b.watch, nil
}

// readOf returns the read that sets the watch of the key.
func readOf(key watchreg.Key) requests.Request[proto.Node] {
	switch key.Kind {
	case watchreg.Exists:
		return requests.Exists(key.Path)
	case watchreg.Children:
		return requests.Children(key.Path)
	default:
		return requests.Get(key.Path)
	}
}

// WatchEach sets a watch of one kind on each of the paths, as [Client.Watch] does, within the time
// of one: it sends all reads before it waits for a reply. It returns a Watch or an error for each
// path, in their order; an outage fails all of them. It is retried as a whole by the client's
// policy until ctx ends.
//
// If an earlier call has read a znode and still watches it, WatchEach does not read it again. The
// state that the kind watches has not changed then. Other fields of the Stat may be older, as the
// number of children of a znode whose data are watched.
func (c *Client) WatchEach(ctx context.Context, kind WatchKind, paths ...string) ([]*Watch, []error) {
	faults := make([]error, len(paths))
	found := make([]beginning, len(paths))
	for i, path := range paths {
		found[i].key, faults[i] = c.watchKey(kind, path)
	}
	if err := errors.Join(faults...); err != nil || len(paths) == 0 {
		return make([]*Watch, len(paths)), c.wrapEach(ctx, "watch", paths, faults)
	}
	_, err := do(ctx, c.core, request{op: "watch", path: found[0].key.Path, session: c.session, reads: true}, func(ctx context.Context, s *session.Session) (struct{}, error) {
		return struct{}{}, c.core.watchEach(ctx, s, found)
	})
	ws := make([]*Watch, len(paths))
	for i := range paths {
		if faults[i] = err; err == nil {
			ws[i], faults[i] = found[i].watch, found[i].err
		}
	}
	return ws, c.wrapEach(ctx, "watch", paths, faults)
}

// wrapEach wraps the faults, for the paths that have one.
func (c *Client) wrapEach(ctx context.Context, op string, paths []string, faults []error) []error {
	for i, err := range faults {
		faults[i] = c.callError(ctx, op, paths[i], err)
	}
	return faults
}

// watchEach sets a Watch, or its fault, for each key. It returns an error only if the connection failed one of the
// reads; then no Watch is left.
func (c *core) watchEach(ctx context.Context, s *session.Session, each []beginning) error {
	for i := range each {
		each[i] = c.beginWatch(s, each[i].key, true, time.Time{})
	}
	var outage error
	for i, b := range each {
		w, err := b.wait(ctx)
		each[i].watch, each[i].err = w, err
		if outage == nil && err != nil && (ctx.Err() != nil || Retryable(err) || errors.Is(err, ErrClosed)) {
			outage = err
		}
	}
	if outage == nil {
		return nil
	}
	for _, b := range each {
		if b.watch != nil {
			b.watch.Close()
		}
	}
	return outage
}

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
// may not read.
func (c *Client) WatchTree(ctx context.Context, path string) (*TreeWatch, error) {
	usercall.Require("ctx", ctx != nil)
	full, err := c.readPath(path)
	if err != nil {
		return nil, c.opError("watch tree", path, err)
	}
	w := &TreeWatch{client: c}
	c.core.trees.Join(&w.tree, full)
	c.core.wakeSession()
	if err := w.await(ctx); err != nil {
		w.Close()
		return nil, c.callError(ctx, "watch tree", path, err)
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
// client is closed, even if changes wait.
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
		return nil, w.client.callError(ctx, "next change", w.client.viewPath(w.tree.Path()), err)
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
