package barrier

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// leave releases the lease of a member's place, and waits until all members that were in have left.
// If the lease is lost, Leave returns that error and does not wait. When Leave returns nil, the member's
// own znode is gone, too.
//
// Leave follows Curator's protocol. Every member but the first in the order of the names deletes its
// znode, and waits until that of the first is gone. The first waits until it is alone, and then
// deletes ready and its own znode, in one transaction if the directory has not changed. So one event
// tells all others that all are out. Members that enter after Leave began belong to the next use of
// the barrier: a Leave after one that stopped waiting waits for the members that the first one knew.
func (g *gate) leave(ctx context.Context, l *lease.Lease, place *place) (err error) {
	_, own := zkpath.Split(l.Node())
	d := &departure{gate: g, lease: l, place: place, own: own}
	d.long.Report = contender.LogLongWait(g.client, "other members to leave", g.path, "")
	if errors.Is(l.Err(), lease.ErrReleased) && g.remembers() {
		return errors.Join(d.release(ctx), g.awaitFormer(ctx, &d.long))
	}
	defer func() {
		if d.listed || err == nil || !g.remembers() { // else an earlier Leave may know more
			g.remember(d.left(err))
		}
	}()
	for rounds := pace.Rounds(); ; {
		out, err := d.step(ctx)
		switch {
		case out || err != nil && errors.Is(l.Err(), lease.ErrLost): // the error may tell of another lease, by ctx's cause
			return err
		case err != nil && ctx.Err() == nil && waitqueue.Disconnected(err): // an outage ends no Leave
		case err != nil:
			return errors.Join(err, release(ctx, l))
		}
		if err := rounds.Wait(ctx, 1); err != nil {
			return errors.Join(err, release(ctx, l))
		}
	}
}

// A departure is a member's way out. One goroutine uses it.
type departure struct {
	gate   *gate
	lease  *lease.Lease
	place  *place   // the lease's
	own    string   // name of the member's znode
	listed bool     // inside is known
	inside []string // the other members that were in, and have not left
	zxid   int64    // they were created by then
	long   waitqueue.LongWait
}

// left returns the members that are in after a departure that ended with err; nil for none.
func (d *departure) left(err error) *formerRound {
	if err == nil {
		return nil
	}
	return &formerRound{d.listed, d.inside, d.zxid}
}

// step looks once, and waits for a change unless the member is out.
func (d *departure) step(ctx context.Context) (out bool, err error) {
	listed, err := d.list(ctx)
	if err != nil {
		return false, err
	}
	members := slices.DeleteFunc(membersOf(listed.names), func(name string) bool { return name == d.own })
	if !d.listed {
		d.listed, d.inside, d.zxid = true, members, listed.zxid
	}
	d.inside = slices.DeleteFunc(d.inside, func(name string) bool { return !slices.Contains(members, name) })
	switch {
	case len(d.inside) == 0 && len(members) == 0:
		err := d.releaseLast(ctx, listed)
		return err == nil, err
	case len(d.inside) == 0: // members have entered again
		err := d.release(ctx)
		return err == nil, err
	case d.own < d.inside[0]:
		held := d.lease
		if errors.Is(held.Err(), lease.ErrReleased) { // it was not the first before
			held = nil
		}
		return false, d.awaitGone(ctx, d.inside[len(d.inside)-1], held)
	}
	if err := d.release(ctx); err != nil {
		return false, err
	}
	return false, d.awaitGone(ctx, d.inside[0], nil)
}

// releaseLast deletes ready, and releases the lease if that was not done before.
func (d *departure) releaseLast(ctx context.Context, listed directory) error {
	if errors.Is(d.lease.Err(), lease.ErrReleased) {
		if err := d.gate.removeReady(ctx, d.gate.client, listed); err != nil {
			return err
		}
	} else if listed.hasReady() {
		d.place.last.Store(&listed)
	}
	return d.release(ctx)
}

// release releases the lease, and waits until the znode is gone. An earlier release may not have waited.
func (d *departure) release(ctx context.Context) error {
	if err := release(ctx, d.lease); err != nil {
		return err
	}
	return d.gate.ensureGone(ctx, d.own)
}

// list returns the children of the barrier's directory. It waits across outages, unless the lease is
// lost.
func (d *departure) list(ctx context.Context) (directory, error) {
	for {
		listed, err := d.gate.list(ctx, d.gate.client)
		err = except(err, framework.ErrNoNode)
		lost := errors.Is(d.lease.Err(), lease.ErrLost)
		switch {
		case lost && (err == nil || ctx.Err() == nil):
			return directory{}, d.lease.Err()
		case err == nil || ctx.Err() != nil || !waitqueue.Disconnected(err):
			return listed, err
		}
		if err := d.gate.client.AwaitConnected(ctx); err != nil {
			return directory{}, err
		}
	}
}

// awaitGone waits until the member's znode is gone, or may be. If held is not nil, it also ends when
// that lease is lost. A member whose znode was seen to go is out, although it may enter again by the
// same name.
func (d *departure) awaitGone(ctx context.Context, member string, held *lease.Lease) error {
	if held != nil {
		var cancel context.CancelFunc
		ctx, cancel = held.Context(ctx)
		defer cancel()
	}
	c, path := d.gate.client, zkpath.Join(d.gate.path, member)
	watch, err := c.Watch(ctx, path, framework.WatchData)
	if err == nil {
		st, _ := watch.Stat()
		err = d.long.Await(ctx, nil, func() waitqueue.Blocker {
			return waitqueue.Blocker{Ahead: len(d.inside), Path: path, Data: watch.Data(), Stat: st}
		}, watch, nil, nil)
		if err != nil {
			err = args.Ended(ctx, c)
		}
		if watch.Event() == framework.EventDeleted {
			d.inside = slices.DeleteFunc(d.inside, func(name string) bool { return name == member })
		}
		watch.Close()
	}
	switch {
	case held != nil && held.Err() != nil:
		return held.Err()
	case errors.Is(err, framework.ErrNoNode):
		return nil
	}
	return err
}

// release releases the lease, unless that was done before.
func release(ctx context.Context, l *lease.Lease) error {
	return except(l.Release(ctx), lease.ErrReleased)
}

// readyName is the znode that exists from the entry of the last member until all have left.
const readyName = "ready"

// A directory is a listing of the barrier's directory. Its version tells one ready from the next: each
// member that creates ready writes to the directory in the same transaction. So a deletion that checks
// the version can't meet a ready that docent created after the listing. The data stays as it is.
type directory struct {
	names   []string
	version int32
	zxid    int64 // all of names were created by then; 0 for unknown
}

// unknownVersion is that of a listing without a Stat.
const unknownVersion = framework.AnyVersion

// ready returns the path of the znode that lets members in.
func (g *gate) ready() string { return zkpath.Join(g.path, readyName) }

// list lists the barrier's directory.
func (g *gate) list(ctx context.Context, c *framework.Client) (directory, error) {
	names, st, err := c.Children(ctx, g.path)
	return directory{names, st.Version, st.Pzxid}, err
}

// maxChecked is how many members open checks, if the request is not too large then.
const maxChecked = 1000

// open makes sure that there is a ready that was created after the member's znode, and reports whether there is; if
// not, the members have changed since they were listed. The transaction that creates ready checks that they all
// exist. Otherwise a member that came after the listing could be let in with those that have withdrawn since.
func (g *gate) open(ctx context.Context, member *waitqueue.Grant, listed directory) (done bool, err error) {
	c := member.Client
	mark, err := g.mark(ctx, c)
	if errors.Is(err, framework.ErrNoNode) {
		return false, errGone
	}
	if err != nil {
		return false, err
	}
	var ops, checks []framework.TxnOp
	if slices.Contains(listed.names, readyName) {
		st, exists, err := c.Exists(ctx, g.ready())
		if err != nil || exists && st.Czxid > member.Stat.Czxid {
			return err == nil, err
		}
		if exists {
			ops = append(ops, framework.OpDelete(g.ready(), framework.AnyVersion))
		}
	}
	ops = append(ops, framework.OpCreate(g.ready(), contender.LocalAddress(), g.acl...))
	if g.members <= maxChecked {
		for _, name := range membersOf(listed.names)[:g.members] {
			checks = append(checks, framework.OpCheck(zkpath.Join(g.path, name), framework.AnyVersion))
		}
	}
	// Maybe the directory is not the client's to write, or the members are not its to read, or their paths fill a
	// request.
	for _, more := range [][]framework.TxnOp{append(slices.Clip(checks), mark), checks, {mark}, nil} {
		_, err = c.Txn(ctx, append(slices.Clip(ops), more...)...)
		if !errors.Is(err, framework.ErrNoAuth) && !errors.Is(err, framework.ErrTooLarge) {
			break
		}
	}
	if changed(err) {
		return false, nil
	}
	return err == nil, err
}

// mark returns the operation that gives the directory another version.
func (g *gate) mark(ctx context.Context, c *framework.Client) (framework.TxnOp, error) {
	data, st, err := c.Get(ctx, g.path)
	if errors.Is(err, framework.ErrNotGzip) || errors.Is(err, framework.ErrTooLarge) { // data of another program
		return framework.OpCheck(g.path, framework.AnyVersion), nil
	}
	return framework.OpSet(g.path, data, st.Version), err
}

// hasReady reports whether there was a ready that can be told from the next.
func (d directory) hasReady() bool {
	return d.version != unknownVersion && slices.Contains(d.names, readyName)
}

// removeReady deletes the ready that was there when the directory was listed. If the directory has
// changed since, removeReady does nothing.
func (g *gate) removeReady(ctx context.Context, c *framework.Client, listed directory) error {
	if !listed.hasReady() {
		return nil
	}
	if err := g.deleteReady(ctx, c, listed); !changed(err) {
		return err
	}
	return nil
}

// deleteReady is a transaction that fails if the directory has changed since it was listed, with more deletions.
func (g *gate) deleteReady(ctx context.Context, c *framework.Client, listed directory, more ...framework.TxnOp) error {
	_, err := c.Txn(ctx, append([]framework.TxnOp{
		framework.OpCheck(g.path, listed.version), framework.OpDelete(g.ready(), framework.AnyVersion),
	}, more...)...)
	return err
}

// changed reports whether a transaction failed because another client has changed ready or the
// directory.
func changed(err error) bool {
	return errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrNoNode)
}

// membersOf returns the names of the members' znodes, in order.
func membersOf(names []string) []string {
	members := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == readyName })
	slices.Sort(members)
	return members
}
