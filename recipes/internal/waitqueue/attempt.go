package waitqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// errGone means that the attempt's node is no longer in the queue.
var errGone = errtype.New("waitqueue: own node is gone", errtype.Other)

// An Attempt is one contender's way through the queue: it creates a node in the client's session,
// waits, and is granted or withdraws. If its session ends, or another client deletes its node, it
// queues again. One goroutine at a time may drive it. If that goroutine fails, another one may
// take the attempt over.
//
// # Why no two hold
//
// Let A's node come before B's, so that B has to wait for A ([Queue.Predecessor]).
//
//  1. B is granted by a reply to a listing that shows B's node, and none that B has to wait for. A name is
//     given once, so the reply shows a state S in which B's node existed, whenever the request was sent.
//  2. A's node is not in S, and does not come later: numbers grow, and at the counter's end czxids decide, so
//     what is created after B's node comes behind it. The exception is the node of a downgrade
//     ([Queue.MayReplace]). It counts only if one listing shows it and the write node. Then no contender behind
//     these two had been granted, and each of them finds the new node in the listing that is to grant it.
//  3. So A's node had been deleted by S. A's client deletes it once A does not hold. The ensemble deletes
//     it with A's session, and A's hold was lost before that, at the session's deadline: see secure. If a
//     third client deletes it, A's hold is lost as soon as A's client sees that.
//  4. B holds only while its session certainly exists, and so B's node, for all behind B to find.
//
// Contenders of another kind are refused, or waited for, by the same listing: see checkKinds. No event grants, it
// is a reason to list again: one that is late or lost costs time. What saves a request is behind [shortcuts],
// and has to show the same.
type Attempt struct {
	queue *Queue
	kind  string
	data  func() []byte
	write *Grant // of a downgrade; nil if the attempt queues as others do

	znode        hold.Znode     // the node, with the session that it is bound to; without a Path if there is none
	self         queuenode.Node // the node
	kindsChecked bool           // a listing showed the node, and no contender of another kind ahead of it

	waiter    *waiter   // since it began to wait
	rounds    pace.Pace // of restarts and listings
	shortcuts shortcuts
	reports
}

// NewAttempt returns an attempt that has not entered the queue yet. When its node is created, data
// returns the node's data.
func (q *Queue) NewAttempt(kind string, data func() []byte) *Attempt {
	a := newAttempt()
	a.queue, a.kind, a.data, a.rounds, a.reported = q, kind, data, pace.Rounds(), -1
	return a
}

// Run drives the attempt until it is granted, ctx ends or a request fails. With an error the
// attempt keeps what it has, its node included: Run again, or Withdraw.
func (a *Attempt) Run(ctx context.Context) (*Grant, error) { return a.repeat(ctx, a.run) }

// Try waits for no other contender: it returns a grant, or [ErrBusy] with its node deleted. If it
// finds a predecessor before it has a node, it does not create one.
func (a *Attempt) Try(ctx context.Context) (*Grant, error) { return a.repeat(ctx, a.try) }

// repeat queues again if the session ends, or if another client deletes the node.
func (a *Attempt) repeat(ctx context.Context, once func(context.Context) (*Grant, error)) (*Grant, error) {
	for {
		grant, err := once(ctx)
		if !Restartable(err) {
			return grant, err
		}
		if errors.Is(err, errGone) {
			a.Withdraw() // the node of a downgrade may exist, without its write node
		} else {
			a.leave()
		}
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
	}
}

func (a *Attempt) run(ctx context.Context) (*Grant, error) {
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	if err := a.await(ctx); err != nil {
		return nil, err
	}
	if err := a.secure(ctx); err != nil {
		return nil, err
	}
	a.ReportGranted()
	return a.grant(), nil
}

func (a *Attempt) try(ctx context.Context) (*Grant, error) {
	if a.write == nil && a.znode.Path == "" {
		if err := a.checkFree(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	pos, err := a.position(ctx)
	switch {
	case err != nil:
		return nil, err
	case pos.predecessor != "":
		return nil, a.Cancel(ctx)
	}
	if err := a.secure(ctx); err != nil {
		return nil, err
	}
	return a.grant(), nil
}

// Withdraw ends the attempt. Its node is deleted in the background, until it is gone or its
// session has ended.
func (a *Attempt) Withdraw() {
	if a.znode.Path != "" {
		a.znode.Client.Discard(a.znode.Path)
	}
	a.leave()
}

// Cancel deletes the node of an attempt that has a predecessor, and returns ErrBusy. It waits for
// the deletion, because the next Try must not find this node. If the deletion is not confirmed,
// the error says why.
func (a *Attempt) Cancel(ctx context.Context) error {
	err := a.znode.Client.Delete(ctx, a.znode.Path, framework.Guaranteed())
	a.leave()
	if err == nil || errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrSessionEnded) {
		return ErrBusy
	}
	return fmt.Errorf("%w: %w", ErrBusy, err)
}

// Restartable reports whether an attempt that failed with err has to enter the queue again: its
// session has ended, or another client deleted its node.
func Restartable(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, framework.ErrSessionEnded)
}

// leave forgets the node and the session.
func (a *Attempt) leave() {
	own := a.endWait()
	own.close()
	if a.znode.Path != "" {
		a.shortcuts.left(false)
	}
	if a.znode.Session != nil {
		a.znode.Session.Release()
	}
	a.znode, a.write = hold.Znode{}, nil
}

// enter makes sure that the attempt has a node of a session that has not ended.
func (a *Attempt) enter(ctx context.Context) error {
	if a.znode.Session != nil && a.znode.Session.Err() != nil {
		a.leave()
	}
	for a.znode.Path == "" {
		if err := a.bind(ctx); err != nil {
			return err
		}
		err := a.create(ctx)
		if errors.Is(err, framework.ErrSessionEnded) {
			a.leave()
			err = a.rounds.Wait(ctx, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bind binds the attempt to the client's session: its node counts in no other.
func (a *Attempt) bind(ctx context.Context) error {
	switch {
	case a.znode.Session != nil:
		return nil
	case a.write != nil && a.writeNode().Overflowed():
		return ErrCounterEnd
	}
	session, err := a.queue.Client.HoldSession(ctx)
	if err != nil {
		return err
	}
	a.znode = hold.Znode{Client: a.queue.Client.InSession(session.Session()), Session: session}
	if a.write != nil && a.write.Session.Session() != session.Session() {
		a.write = nil
	}
	return nil
}

// checkFree returns ErrBusy if the attempt would have a predecessor, and ErrMixed if a contender of
// another kind would be ahead. The client's server may lag behind the server that processed a release,
// so the first listing may be old. checkFree therefore syncs and lists again before it refuses. A leader
// answers a sync before it has applied all that it has committed. So an attempt that is connected to the
// leader may be refused right after a release.
func (a *Attempt) checkFree(ctx context.Context) (err error) {
	for _, synced := range []bool{false, true} {
		if synced {
			if err := a.queue.Client.Sync(ctx, a.queue.Dir); err != nil {
				return err
			}
		}
		var nodes []queuenode.Node
		nodes, err = a.queue.List(ctx)
		switch {
		case errors.Is(err, ErrMixed):
			continue
		case err != nil:
			return err
		}
		last := queuenode.Node{Kind: a.kind} // the attempt's node, if it came behind all others
		own := len(nodes)
		if own > 0 {
			last.Sequence = nodes[own-1].Sequence + 1
		}
		if a.queue.Predecessor(append(nodes, last), own, own) < 0 {
			return nil
		}
		err = ErrBusy
	}
	return err
}

// create creates the node.
func (a *Attempt) create(ctx context.Context) error {
	data := a.data() // first: it may be a user's, and other attempts may wait for the answer
	name, opts := a.creation()
	defer a.shortcuts.answered()
	path, err := a.znode.Client.Create(ctx, zkpath.Join(a.queue.Dir, name), data, opts...)
	if err != nil {
		return a.queue.CreationError(err)
	}
	a.created(path)
	return nil
}

// creation returns how the node is to be created; its name is without what framework and server add.
func (a *Attempt) creation() (name string, opts []framework.CreateOption) {
	opts = append(make([]framework.CreateOption, 0, 7), // as many as follow
		framework.Ephemeral(), framework.Protected(), framework.WithParents(), framework.StatTo(&a.znode.Stat))
	name = a.kind
	if a.write == nil {
		opts = append(opts, framework.Sequential())
	} else {
		name += a.writeNode().Digits()
	}
	if a.queue.ACL != nil {
		opts = append(opts, framework.WithACL(a.queue.ACL...))
	}
	return name, a.shortcuts.creating(opts)
}

// created notes the node, which was created at the path.
func (a *Attempt) created(path string) {
	_, name := zkpath.Split(path)
	a.znode.Path = path
	a.self, _ = queuenode.Parse(name, a.queue.Kinds) // it has the name that was asked for
	a.kindsChecked = a.write != nil                  // a downgrade's owner was checked as a writer
}

// position returns what the attempt has to wait for, by a listing. A node that is not listed is gone: the
// listing is no older than the node.
func (a *Attempt) position(ctx context.Context) (position, error) {
	v, err := a.shortcuts.list(ctx)
	if err != nil {
		return position{}, err
	}
	own := queuenode.Index(v.nodes, a.self.Name)
	if own < 0 {
		return position{}, errGone
	}
	if other, err := a.checkKinds(ctx, v); err != nil || other != "" {
		pos := position{ahead: own + 1, predecessor: other}
		if own > 0 {
			pos.also = v.nodes[0].Name // if it goes first, the other is not refused any more
		}
		return pos, err
	}
	if a.write != nil && queuenode.Index(v.nodes, a.writeNode().Name) < 0 {
		return position{}, errGone // a contender behind the write node may have been granted
	}
	if a.write != nil {
		return position{ahead: own}, nil
	}
	return a.shortcuts.prepare(a.queue.position(v.nodes, own), v.nodes, own), nil
}

// checkKinds returns ErrMixed if a contender of another kind is ahead of the attempt, or the name of one that
// has to be gone first: see otherAhead. Those that come later do not end the wait, and cost one line of
// the log. All grants come after a position, and so after checkKinds.
func (a *Attempt) checkKinds(ctx context.Context, v view) (other string, err error) {
	if a.kindsChecked {
		a.warnOfOthers(v)
		return "", nil
	}
	other, err = a.queue.otherAhead(ctx, a.znode.Client, v, &a.self, a.znode.Stat.Czxid)
	a.kindsChecked = err == nil && other == ""
	return other, err
}

// secure makes the grant certain: the session, and so the node, certainly exists now, and the hold is lost
// before the ensemble can expire that. Breaks of the connection count from then on, also while a
// function of the user's is notified of the grant.
func (a *Attempt) secure(ctx context.Context) error {
	err := a.znode.Session.Secure(ctx)
	a.znode.Breaks = a.znode.Session.Breaks()
	return err
}

// A Grant is a znode of the queue that was granted.
type Grant struct {
	hold.Znode
	Write *Grant // of the write side, if this is a downgrade; else nil
}

// Fence returns a number that grows from grant to grant: the czxid of the node. A downgrade has the
// fence of its write grant. The czxid of its own node may be greater than that of nodes behind it,
// which are granted later.
func (g *Grant) Fence() int64 {
	if g.Write != nil {
		return g.Write.Fence()
	}
	return g.Znode.Fence()
}

// grant ends the wait and returns the grant. The attempt keeps its node and its session.
func (a *Attempt) grant() *Grant {
	g := &Grant{Znode: a.znode, Write: a.write}
	g.Own = a.endWait().watch
	a.shortcuts.left(true)
	return g
}

// NewDowngrade returns an attempt of the write grant's owner, who takes the read side, too, and may
// hold it longer. It does not wait: its node has the number of the write node, so it is ahead of
// all nodes behind that one. It is not sequential, as Curator's node of a writer that takes the
// read lock. If the write node is gone before both nodes were listed, the attempt queues as others
// do.
func (q *Queue) NewDowngrade(write *Grant, kind string, data func() []byte) *Attempt {
	a := q.NewAttempt(kind, data)
	a.write = write
	return a
}

// writeNode returns the node of the write grant.
func (a *Attempt) writeNode() queuenode.Node {
	_, name := zkpath.Split(a.write.Path)
	node, _ := queuenode.Parse(name, a.queue.Kinds) // what was granted is a contender
	return node
}
