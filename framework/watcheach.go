package framework

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

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
	keys := make([]watchreg.Key, len(paths))
	for i, path := range paths {
		keys[i] = watchreg.Key{Kind: watchreg.Kind(kind), Path: c.fullPath(path)}
		faults[i] = c.watchFault(kind, path, keys[i].Path)
	}
	if err := errors.Join(faults...); err != nil || len(paths) == 0 {
		return make([]*Watch, len(paths)), wrapEach(ctx, "watch", paths, faults)
	}
	found, err := do(ctx, c.core, request{op: "watch", path: keys[0].Path, session: c.session, repeat: repeatable, reads: true}, func(ctx context.Context, s *session.Session) ([]outcomeOfWatch, error) {
		return c.core.watchEach(ctx, s, keys)
	})
	ws := make([]*Watch, len(paths))
	for i := range paths {
		if faults[i] = err; err == nil {
			ws[i], faults[i] = found[i].watch, found[i].err
		}
	}
	return ws, wrapEach(ctx, "watch", paths, faults)
}

// wrapEach wraps the faults, for the paths that have one.
func wrapEach(ctx context.Context, op string, paths []string, faults []error) []error {
	for i, err := range faults {
		faults[i] = callError(ctx, op, paths[i], err)
	}
	return faults
}

// An outcomeOfWatch is a Watch, or its fault.
type outcomeOfWatch struct {
	watch *Watch
	err   error
}

// watchEach returns an error only if the connection failed one of the reads; then no Watch is left.
// It returns as soon as it knows that, because a retry waits for the next connection. The next
// connection may also answer a read that had not been sent yet.
func (c *core) watchEach(ctx context.Context, s *session.Session, keys []watchreg.Key) ([]outcomeOfWatch, error) {
	all, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	begun := make([]beginning, len(keys))
	for i, key := range keys {
		begun[i] = c.beginWatch(s, key, func(w *zkconn.Conn) (proto.Node, error) {
			found, err := readOf(key)(w)
			if Retryable(err) {
				fail(err)
			}
			return found, err
		}, true)
	}
	found := make([]outcomeOfWatch, len(keys))
	var outage error
	for i, b := range begun {
		found[i].watch, found[i].err = b.wait(all)
		err := found[i].err
		if Retryable(err) {
			fail(err) // another call's read may have shown it
		}
		if all.Err() != nil || errors.Is(err, ErrClosed) {
			outage = errors.Join(outage, err)
		}
	}
	if outage == nil {
		return found, nil
	}
	for _, f := range found {
		if f.watch != nil {
			f.watch.Close()
		}
	}
	if cause := context.Cause(all); ctx.Err() == nil && cause != nil {
		outage = cause
		if c.ctx.Err() != nil {
			outage = ErrClosed
		}
	}
	return nil, outage
}
