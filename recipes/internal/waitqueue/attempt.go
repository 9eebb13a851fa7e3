package waitqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/zkpath"
)

// errGone means that the attempt's node is no longer in the queue.
var errGone = errtype.New("waitqueue: own node is gone", errtype.Other)

// An Attempt is one contender's way through the queue: it creates a node in the client's session,
// waits, and is granted or withdraws. If its session ends, or another client deletes its node, it
// queues again. One goroutine at a time may drive it. If that goroutine fails, another one may
// take the attempt over.
type Attempt struct {
	queue *Queue
	kind  string
	data  func() []byte

	Observer Observer // of its waiting; may be nil. The goroutine that drives may set it

	write    *Grant // of a downgrade; nil if the attempt queues as others do
	reported int    // how many contenders ahead OnPosition was called with last; -1 for none

	client *framework.Client // bound to the hold's session
	hold   *framework.SessionHold
	key    listingKey // set with hold

	node   string         // path of the node; "" if there is none
	self   queuenode.Node // the node
	stat   framework.Stat
	breaks int64    // of the connection when the grant was certain
	listed []string // what was listed along with the creation of the node; nil once used
	fresh  bool     // the node has not been listed yet
	warned bool     // of contenders of another kind that came later

	admitted bool          // a listing showed the node, and no contender of another kind ahead of it
	took     time.Duration // from the call that created the node to its return
	pos      position      // of the wait, as it was last found
	seen     seenWait      // the same for other goroutines
	waiter   *waiter       // since it began to wait
	rounds   pace.Pace     // of restarts and listings
}

// An Observer is notified of an attempt's waiting, by the goroutine that drives the attempt.
type Observer interface {
	// Waits is called with the number of contenders ahead, after each listing that shows some.
	Waits(ahead int)
	// Behind is called after that with the data of the predecessor's znode, which the request
	// that sets the watch has read.
	Behind(data []byte)
}

// NewAttempt returns an attempt that has not entered the queue yet. When its node is created, data
// returns the node's data.
func (q *Queue) NewAttempt(kind string, data func() []byte) *Attempt {
	return &Attempt{queue: q, kind: kind, data: data, reported: -1, rounds: pace.Rounds()}
}

// Run drives the attempt until it is granted, ctx ends or a request fails. With an error the
// attempt keeps what it has, its node included: Run again, or Withdraw.
func (a *Attempt) Run(ctx context.Context) (*Grant, error) {
	for {
		if err := a.enter(ctx); err != nil {
			return nil, err
		}
		err := a.await(ctx)
		if err == nil {
			err = a.secure(ctx)
		}
		switch {
		case err == nil:
			a.ReportGranted()
			return a.grant(), nil
		case !Restartable(err):
			return nil, err
		}
		a.restart(err)
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
	}
}

// Try waits for no other contender: it returns a grant, or [ErrBusy] with its node deleted. If it
// finds a predecessor before it has a node, it does not create one. If its session ends, or
// another client deletes its node, Try starts again.
func (a *Attempt) Try(ctx context.Context) (*Grant, error) {
	for {
		grant, err := a.try(ctx)
		if !Restartable(err) {
			return grant, err
		}
		a.restart(err)
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
	}
}

func (a *Attempt) try(ctx context.Context) (*Grant, error) {
	if a.write == nil && a.node == "" {
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

// ReportGranted reports that no contender is ahead of the attempt any more.
func (a *Attempt) ReportGranted() { a.report(0) }

// report calls OnPosition if the number of contenders ahead has changed.
func (a *Attempt) report(ahead int) {
	if a.queue.OnPosition != nil && ahead != a.reported {
		a.reported = ahead
		a.queue.OnPosition(ahead)
	}
}

// Withdraw ends the attempt. Its node is deleted in the background, until it is gone or its
// session has ended.
func (a *Attempt) Withdraw() {
	if a.node != "" {
		a.client.Discard(a.node)
	}
	a.leave()
}

// Cancel deletes the node of an attempt that has a predecessor, and returns ErrBusy. It waits for
// the deletion, because the next Try must not find this node. If the deletion is not confirmed,
// the error says why.
func (a *Attempt) Cancel(ctx context.Context) error {
	err := a.client.Delete(ctx, a.node, framework.Guaranteed())
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

// restart leaves the queue because of err, so that the attempt can enter it again. A node that does
// not contend may exist nevertheless: that of a downgrade whose write node is gone.
func (a *Attempt) restart(err error) {
	if errors.Is(err, errGone) {
		a.Withdraw()
	} else {
		a.leave()
	}
}

// leave forgets the node and the session.
func (a *Attempt) leave() {
	if own := a.endWait(); own != nil {
		own.Close()
	}
	if a.node != "" {
		clientAttemptsOf(a.client).remove(a.self.Name, false)
	}
	if a.hold != nil {
		a.hold.Release()
	}
	a.hold, a.client = nil, nil
	a.node, a.listed, a.write = "", nil, nil
}

// endWait closes the attempt's watches, but for the watch on the own node, which it returns if there
// is one.
func (a *Attempt) endWait() (own *framework.Watch) {
	if a.waiter == nil {
		return nil
	}
	own, a.waiter = a.waiter.end(), nil
	a.seen.set(position{}, nil)
	return own
}

// enter makes sure that the attempt has a node of a session that has not ended.
func (a *Attempt) enter(ctx context.Context) error {
	if a.hold != nil && a.hold.Err() != nil {
		a.leave()
	}
	for a.node == "" {
		if err := a.bind(ctx); err != nil {
			return err
		}
		err := a.create(ctx)
		switch {
		case errors.Is(err, framework.ErrSessionEnded):
			a.leave()
			err = a.rounds.Wait(ctx, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Attempt) bind(ctx context.Context) error {
	switch {
	case a.hold != nil:
		return nil
	case a.write != nil && a.writeNode().Overflowed():
		return ErrCounterEnd
	}
	session, err := a.queue.Client.HoldSession(ctx)
	if err != nil {
		return err
	}
	a.hold = session
	a.client = a.queue.Client.InSession(session.Session())
	dir := a.client.AbsolutePath(a.queue.Dir)
	a.key = listingKey{session.Session(), dir, a.queue.Kinds[0]}
	if a.write != nil && a.write.Session.Session() != session.Session() {
		a.write = nil
	}
	return nil
}

// checkFree returns ErrBusy if the attempt would have a predecessor, and ErrMixed if a contender of
// another kind would be ahead. The client's server may lag behind the server that processed a release,
// so the first listing may be old. checkFree therefore syncs and lists again before it refuses. A leader answers a sync before it has applied all that
// it has committed. So an attempt that is connected to the leader may be refused right after a
// release.
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
		if own := len(nodes); a.queue.Predecessor(append(nodes, a.last(nodes)), own, own) < 0 {
			return nil
		}
		err = ErrBusy
	}
	return err
}

// last returns what the attempt's node would be if it came behind all others.
func (a *Attempt) last(nodes []queuenode.Node) queuenode.Node {
	n := queuenode.Node{Kind: a.kind}
	if len(nodes) > 0 {
		n.Sequence = nodes[len(nodes)-1].Sequence + 1
	}
	return n
}

// create creates the node. It lists along with the creation if not too many other attempts do.
func (a *Attempt) create(ctx context.Context) error {
	data := a.data() // first: it may be a user's, and other attempts may wait for the listing
	lists := listingsOf(a.client)
	along := lists.begin(a.key)
	c := a.creation(along != nil)
	defer func() { lists.end(a.key, along, c.names) }()
	node, err := a.client.Create(ctx, zkpath.Join(a.queue.Dir, c.name), data, c.opts...)
	if err != nil {
		return a.queue.CreationError(err)
	}
	a.created(node, c)
	return nil
}

// A creation is how an attempt's node is to be created.
type creation struct {
	begun time.Time
	name  string // without what framework and server add
	opts  []framework.CreateOption
	names []string // of the directory's children, if listed
}

func (a *Attempt) creation(along bool) *creation {
	c := &creation{begun: time.Now(), name: a.kind}
	c.opts = append(make([]framework.CreateOption, 0, 7), // as many as follow
		framework.Ephemeral(), framework.Protected(), framework.WithParents(), framework.StatTo(&a.stat))
	if a.write == nil {
		c.opts = append(c.opts, framework.Sequential())
	} else {
		c.name += a.writeNode().Digits()
	}
	if along {
		c.opts = append(c.opts, framework.ListTo("", &c.names))
	}
	if a.queue.ACL != nil {
		c.opts = append(c.opts, framework.WithACL(a.queue.ACL...))
	}
	return c
}

// created notes the node that the creation has made at the path.
func (a *Attempt) created(path string, c *creation) {
	_, name := zkpath.Split(path)
	a.node, a.fresh, a.listed, a.took = path, true, c.names, time.Since(c.begun)
	a.admitted = a.write != nil                      // a downgrade's owner has been admitted as a writer
	a.self, _ = queuenode.Parse(name, a.queue.Kinds) // it has the name that was asked for
	clientAttemptsOf(a.client).add(a.self.Name)
}

// position returns where the attempt's node is. A node that is not listed is gone: the listing is
// no older than the node, because the session that created the node has read it.
func (a *Attempt) position(ctx context.Context) (position, error) {
	v, err := a.list(ctx)
	if err != nil {
		return position{}, err
	}
	own := queuenode.Index(v.nodes, a.self.Name)
	if own < 0 {
		return position{}, errGone
	}
	if other, err := a.admit(ctx, v); err != nil || other != "" {
		return position{ahead: own + 1, predecessor: other, second: firstBut(v.nodes, own), foreign: true}, err
	}
	if a.write != nil {
		return position{ahead: own}, a.checkWriteNode(v.nodes)
	}
	return a.queue.position(v.nodes, own), nil
}

// firstBut returns the name of the first of the nodes, or "" if that is own.
func firstBut(nodes []queuenode.Node, own int) string {
	if own == 0 {
		return ""
	}
	return nodes[0].Name
}

// admit returns ErrMixed if a contender of another kind is ahead of the attempt, or the name of one that
// has to be gone first: see otherAhead. Those that come later do not end the wait, and cost one line of
// the log. All grants come after a position, and so after admit.
func (a *Attempt) admit(ctx context.Context, v view) (other string, err error) {
	if a.admitted {
		a.warnOfOthers(v)
		return "", nil
	}
	other, err = a.queue.otherAhead(ctx, a.client, v, &a.self, a.stat.Czxid)
	a.admitted = err == nil && other == ""
	return other, err
}

// warnOfOthers logs once that contenders of another kind have come while the attempt waits.
func (a *Attempt) warnOfOthers(v view) {
	if a.warned || len(v.others) == 0 {
		return
	}
	a.warned = true
	a.client.Logger().Named("lock").Warn("another kind of lock has come to the path: both may be granted",
		zap.String("path", a.client.AbsolutePath(a.queue.Dir)), zap.String("contender", v.others[0].Name))
}

// list returns the queue, as listed along with the creation of the node or of another attempt's, or
// by a listing that the attempt shares. The first one may have been on its way before, if it
// contains the node. Later ones are sent after the event that made the attempt list again.
func (a *Attempt) list(ctx context.Context) (view, error) {
	fresh, names := a.fresh, a.listed
	a.fresh, a.listed = false, nil
	if names != nil {
		return a.queue.ordered(ctx, a.client, names)
	}
	if fresh {
		most := max(2*a.took, time.Millisecond) // a listing that was sent meanwhile takes about as long
		v, err := listingsOf(a.client).listedAlong(ctx, a.key, a.queue, a.self.Name, most)
		if v.nodes != nil || err != nil {
			return v, err
		}
	}
	ask := func(ctx context.Context) (view, error) { return a.queue.list(ctx, a.client) }
	return listingsOf(a.client).list(ctx, a.key, ask, func(v view) bool {
		return fresh && queuenode.Index(v.nodes, a.self.Name) >= 0
	})
}
