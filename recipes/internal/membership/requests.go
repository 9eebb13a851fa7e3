package membership

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkpath"
)

// bind waits for a session. Znodes of an earlier session are no longer the Node's.
func (k *Keeper) bind(ctx context.Context) error {
	c := k.opts.Client
	if err := c.AwaitConnected(ctx); err != nil {
		return err
	}
	id := c.Session().ID
	if id == k.session {
		return nil
	}
	k.session, k.client = id, c.InSession(id)
	if k.opts.Sequential && k.znode.Czxid != 0 {
		over := make(chan struct{})
		k.track(over)
		c.Discard(k.path, framework.CreatedBy(k.znode.Czxid), // no other client creates a znode of its name
			framework.WhenOver(func(bool) { close(over) }))
	}
	if !k.opts.Lasting {
		k.path, k.znode = k.opts.Path, framework.Stat{}
	}
	return nil
}

// create creates the znode. inspect watches it next.
func (k *Keeper) create(ctx context.Context, want Content) error {
	k.past.Creates(k.session)
	var st framework.Stat
	var over chan struct{}
	more := []framework.CreateOption{framework.StatTo(&st)}
	if !k.opts.Lasting {
		over = make(chan struct{})
		more = append(more, framework.WhenOver(func(bool) { close(over) }), framework.UntilKnown())
	}
	path, err := k.client.Create(ctx, k.path, want.Data, k.opts.Create(more...)...)
	k.track(over)
	k.replace(nil)
	k.noteSent(want, err)
	if errors.Is(err, framework.ErrNodeExists) {
		k.past.Refused(k.session)
		return k.inspect(ctx, want)
	}
	if err != nil {
		return err
	}
	k.path, k.touched, k.adopted = path, time.Time{}, false
	written := want.Number
	if st.Version == 1 && st.Czxid == st.Mzxid { // it is that of a succession of unknown outcome, with what that wrote
		written = 0
	}
	st.Mzxid = st.Czxid // inspect reports what another client has written since
	k.made(ctx, st, written)
	return nil
}

// made records that the session has made the znode, with the Content of the number. So the outcome of an earlier
// succession is known.
func (k *Keeper) made(ctx context.Context, st framework.Stat, number int64) {
	k.past.Created(k.session)
	k.znode, k.written, k.unsure = st, number, succession{}
	k.opts.Created(ctx)
}

// inspect watches the path and judges the znode that is there. It deletes one of a former session.
func (k *Keeper) inspect(ctx context.Context, want Content) error {
	watch, err := k.client.Watch(ctx, k.path, framework.WatchExists)
	if err != nil {
		return err
	}
	k.replace(watch)
	st, exists := watch.Stat()
	if behind, err := k.readBehind(ctx, st, exists); behind || err != nil {
		k.replace(nil) // to inspect again
		return err
	}
	found, known := k.judge(st, exists), k.knows(st)
	if found == ownZnode && st.Mzxid != k.znode.Mzxid && k.written == want.Number {
		k.opts.Overwritten()
	}
	if found != ownZnode && k.znode.Czxid != 0 {
		k.path = k.opts.Path
		k.opts.Gone(framework.ErrNoNode)
	}
	if k.znode = st; found == ownZnode || found == noZnode {
		return nil
	}
	k.znode.Czxid = 0
	switch found {
	case lastingZnode:
		return k.adopt(ctx, st, known)
	case formerZnode:
		return k.succeed(ctx, want, st)
	case successorZnode:
		k.made(ctx, st, k.unsure.number)
		if st.Mzxid != st.Czxid {
			k.opts.Overwritten()
		}
		return nil
	}
	return ErrTaken
}

// readBehind reports whether the Stat is of an earlier state of the znode, because the server lags behind that of the
// former session. After a restore an older Stat is that of the present state.
func (k *Keeper) readBehind(ctx context.Context, st framework.Stat, exists bool) (bool, error) {
	if !exists || st.Mzxid >= k.znode.Mzxid {
		return false, nil
	}
	now, _, err := ExistsBehind(ctx, k.client, k.path)
	return now.Mzxid != st.Mzxid, err
}

// A finding says whose the znode at the path is.
type finding int

const (
	noZnode        finding = iota + 1 // there is none
	ownZnode                          // as the Keeper knows it
	lastingZnode                      // of no session, and the Keeper's is to be so, too
	formerZnode                       // of one of the client's former sessions
	successorZnode                    // the Keeper's, by a request of unknown outcome
	foreignZnode
)

// judge returns whose the znode with the Stat is. It changes nothing.
func (k *Keeper) judge(st framework.Stat, exists bool) finding {
	switch owner := st.EphemeralOwner; {
	case !exists:
		return noZnode
	case st.Czxid == k.znode.Czxid && (!k.adopted || st.Mzxid == k.znode.Mzxid) && !k.restored(st):
		return ownZnode
	case k.opts.Lasting && !proto.IsSession(owner):
		return lastingZnode
	case k.past.Has(owner, k.session):
		return formerZnode
	case k.succeeded(st):
		return successorZnode
	}
	return foreignZnode
}

// restored reports whether the ensemble was restored since the Keeper saw its znode, so that the data is of an earlier
// moment, or of another history, in which a transaction id is that of another transaction. A znode of the Keeper's
// session is its own nevertheless.
func (k *Keeper) restored(st framework.Stat) bool {
	return k.opts.Lasting && (st.Mzxid < k.znode.Mzxid || st.Mzxid == k.znode.Mzxid && !st.Mtime.Equal(k.znode.Mtime))
}

// A succession is the replacement of a former session's znode whose outcome is unknown.
type succession struct {
	session int64 // in which it was sent; 0 for none
	number  int64 // of the new znode's Content
}

// succeeded reports whether the znode is that of the succession of unknown outcome. Only a transaction
// creates a znode and sets its data at once. Another client may have written to it since, so its version only
// grows: what the client makes by hand at the path has version 0, and passes for it if it is written to twice.
func (k *Keeper) succeeded(st framework.Stat) bool {
	return k.unsure.session == k.session && st.EphemeralOwner == k.session && (st.Version > 1 || st.Version == 1 && st.Czxid == st.Mzxid)
}

// succeed replaces the znode of a former session by one transaction, so at no moment the path is without
// a znode. It identifies that znode by its czxid, because another client may have the path by now.
func (k *Keeper) succeed(ctx context.Context, want Content, former framework.Stat) error {
	k.replace(nil)
	k.past.Creates(k.session)
	results, err := k.client.Txn(ctx,
		framework.OpDelete(k.path, former.Version, framework.CreatedBy(former.Czxid)),
		framework.OpCreate(k.path, want.Data, append(slices.Clip(k.opts.ACL), framework.Ephemeral())...),
		framework.OpSet(k.path, want.Data, 0)) // its result is the new znode's Stat
	var refused *framework.TxnError
	switch {
	case err == nil:
		k.made(ctx, results[2].Stat, want.Number)
	case errors.As(err, &refused):
		k.past.Refused(k.session)
	default:
		k.unsure = succession{k.session, want.Number}
	}
	return unless(err, framework.ErrNoNode, framework.ErrBadVersion)
}

// knows reports whether the znode is the one that the Keeper has written, maybe as it was before that.
func (k *Keeper) knows(st framework.Stat) bool {
	return !k.adopted && st.Czxid == k.znode.Czxid && st.Ctime.Equal(k.znode.Ctime)
}

// adopt makes a znode that belongs to no session the Keeper's. known says that it was that before a restore.
func (k *Keeper) adopt(ctx context.Context, st framework.Stat, known bool) error {
	if k.opts.Adopt != nil && !known {
		data, read, err := k.client.Get(ctx, k.path)
		if err != nil {
			k.replace(nil) // to inspect again
			return unless(err, framework.ErrNoNode)
		}
		own := slices.ContainsFunc(k.sent, func(sent []byte) bool { return bytes.Equal(sent, data) })
		if !own {
			if own, err = k.opts.Adopt(ctx, data); err != nil {
				return err
			}
		}
		if st = read; !own {
			return ErrTaken
		}
	}
	k.znode, k.written, k.adopted = st, 0, !known
	return nil
}

// noteSent notes whether a lasting znode may have the content by a request that ended with err.
func (k *Keeper) noteSent(want Content, err error) {
	switch {
	case err == nil:
		k.sent = nil
	case k.opts.Lasting && errors.Is(err, framework.ErrUnknownOutcome):
		if n := len(k.sent); n == 0 || !bytes.Equal(k.sent[n-1], want.Data) {
			k.sent = append(k.sent, want.Data)
		}
	}
}

// write writes the content, unless another client has written to the znode: then the keeper inspects it. It also
// inspects it if it has written to a znode of the same version that another client has created since.
func (k *Keeper) write(ctx context.Context, want Content) error {
	st, err := k.client.Set(ctx, k.path, want.Data, k.znode.Version)
	k.noteSent(want, err)
	if err == nil && st.Czxid == k.znode.Czxid {
		k.znode, k.written, k.adopted = st, want.Number, false
		return nil
	}
	k.replace(nil)
	return unless(err, framework.ErrNoNode, framework.ErrBadVersion)
}

// touch writes the child by which the ensemble knows that the znode is kept.
func (k *Keeper) touch(ctx context.Context) error {
	_, err := k.client.CreateOrSet(ctx, zkpath.Join(k.path, "touch"), []byte{},
		append(slices.Clip(k.opts.ACL), framework.TTL(k.opts.TTL))...)
	if err == nil {
		k.touched = time.Now()
		return nil
	}
	k.replace(nil)
	return unless(err, framework.ErrNoNode) // then the znode is gone
}

// unless returns err, or nil if it is one of those that the keeper handles itself.
func unless(err error, known ...error) error {
	for _, one := range known {
		if errors.Is(err, one) {
			return nil
		}
	}
	return err
}

// replace makes watch the keeper's.
func (k *Keeper) replace(watch *framework.Watch) {
	if k.watch != nil {
		k.watch.Close()
	}
	k.watch = watch
}

// track adds a deletion in the background, unless over is nil: it is closed when the deletion has ended.
func (k *Keeper) track(over <-chan struct{}) {
	k.ending = slices.DeleteFunc(k.ending, func(over <-chan struct{}) bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	if over != nil {
		k.ending = append(k.ending, over)
	}
}

// End deletes the znode, unless it belongs to no session. It returns nil once no znode of the present
// session is left, or the session has ended. It may be called when Run has returned.
func (k *Keeper) End(ctx context.Context) error {
	defer k.replace(nil)
	if k.opts.Lasting {
		return nil
	}
	err := unless(k.deleteOwn(ctx), framework.ErrSessionEnded, framework.ErrClosed) // it ends with its session
	for _, over := range k.ending {
		if ended := awaitOver(ctx, over); ended != nil {
			return errors.Join(err, fmt.Errorf("%w: its znode may exist until the client has deleted it in the background", ended))
		}
	}
	return err
}

// deleteOwn deletes the znode that the Keeper has, or may have by a succession of unknown outcome.
func (k *Keeper) deleteOwn(ctx context.Context) error {
	if k.znode.Czxid == 0 && k.unsure.session == k.session && k.session != 0 {
		if err := k.findUnsure(ctx); err != nil {
			return fmt.Errorf("its znode may exist until the session ends: %w", err)
		}
	}
	if k.znode.Czxid == 0 {
		return nil
	}
	return k.client.Delete(ctx, k.path, framework.CreatedBy(k.znode.Czxid), framework.Guaranteed(), framework.Idempotent())
}

// findUnsure makes the znode the Keeper's if a succession of unknown outcome has created it.
func (k *Keeper) findUnsure(ctx context.Context) error {
	st, exists, err := ExistsBehind(ctx, k.client, k.path)
	if err == nil && exists && k.succeeded(st) {
		k.znode = st
	}
	return err
}

// ExistsBehind is Exists behind a commit. The server may be behind that of an earlier request: also a leader that was
// deposed, which replies to a sync from its memory.
func ExistsBehind(ctx context.Context, c *framework.Client, path string) (framework.Stat, bool, error) {
	_, err := c.Txn(ctx, framework.OpCheck(path, math.MaxInt32)) // it fails by the version, and is committed
	if refused := (*framework.TxnError)(nil); err != nil && !errors.As(err, &refused) {
		return framework.Stat{}, false, err
	}
	return c.Exists(ctx, path)
}
