package waitqueue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// A waiter is what an attempt has while it waits: watches on its own node, on its predecessor and
// on the predecessor after that.
type waiter struct {
	attempt     *Attempt
	own         nodeWatch // if an operator deletes the node, the attempt queues again
	predecessor nodeWatch // the node that it waits for
	second      nodeWatch // the node that it would wait for then; see await

	// Closed when the predecessor is granted; nil if that is another client's. Then second is
	// not watched.
	granted <-chan struct{}

	long LongWait
}

// A Blocker is what a call waits for. Without a Path no contender is known.
type Blocker struct {
	Ahead int    // how many contenders are ahead, -1 if that is not known
	Path  string // of the first of them, or of the predecessor
	Data  []byte // of that znode, which may be another program's
	Stat  framework.Stat
}

// A LongWait reports that a call waits long: after two seconds, and then after pauses that double up to
// five minutes. The zero value reports nothing. One goroutine uses it.
type LongWait struct {
	Report func(waited time.Duration, by Blocker) // nil for none

	timer *time.Timer
	begun time.Time
	count int // reports
}

// Bounds of the pauses between the reports of a LongWait.
const (
	firstLongWait = 2 * time.Second
	maxLongWait   = 5 * time.Minute
)

// Due returns a channel that is ready when Notify is to be called; nil for never. The first call begins the
// wait.
func (w *LongWait) Due() <-chan time.Time {
	if w.Report == nil {
		return nil
	}
	if w.timer == nil {
		w.begun, w.timer = time.Now(), time.NewTimer(firstLongWait)
	}
	return w.timer.C
}

// Notify reports that the call waits because of by.
func (w *LongWait) Notify(by Blocker) {
	w.count++
	w.timer.Reset(pace.Doubled(firstLongWait, maxLongWait, w.count))
	w.Report(time.Since(w.begun), by)
}

// Await returns nil when the watch has fired, which also rechecks itself, or one of at most two others,
// which may be nil. It returns the error of the session if that ends first, and ctx's. A nil session does
// not end. blocker returns what the call waits for.
func (w *LongWait) Await(
	ctx context.Context, session *framework.SessionHold, blocker func() Blocker, watch *framework.Watch, others ...*framework.Watch,
) error {
	var lost <-chan struct{}
	if session != nil {
		lost = session.Lost()
	}
	var other [2]<-chan struct{}
	for i := range others {
		other[i] = fired(others[i])
	}
	watch.Recheck()
	for {
		select {
		case <-watch.Fired():
			return nil
		case <-other[0]:
			return nil
		case <-other[1]:
			return nil
		case <-w.Due():
			w.Notify(blocker())
		case <-lost:
			return session.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fired returns a channel that is closed when the watch fires; nil if there is no watch.
func fired(w *framework.Watch) <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Fired()
}

// BlockedBy returns the number of contenders that the last listing showed ahead of the attempt, its
// predecessor, and whether that holds the lock. data and st are the predecessor's when it was read to
// be watched, and empty if there was no reply to that. ahead is -1 if no listing showed a contender.
// BlockedBy may be called while another goroutine drives the attempt.
func (a *Attempt) BlockedBy() (ahead int, by queuenode.Node, holds bool, data []byte, st framework.Stat) {
	a.seen.mu.Lock()
	ahead, name, holds, watch := a.seen.ahead, a.seen.predecessor, a.seen.holds, a.seen.watch
	a.seen.mu.Unlock()
	if name == "" {
		return -1, queuenode.Node{}, false, nil, framework.Stat{}
	}
	by, ok := queuenode.Parse(name, a.queue.Kinds)
	if !ok { // of another kind
		by, _ = queuenode.ParseAny(name)
	}
	if watch != nil {
		st, _ = watch.Stat()
		data = watch.Data()
	}
	return ahead, by, holds, data, st
}

// A seenWait is what an attempt waits for, as other goroutines may see it: see [Attempt.BlockedBy].
type seenWait struct {
	mu          sync.Mutex
	ahead       int
	predecessor string // "" if the attempt does not wait
	holds       bool
	watch       *framework.Watch // on the predecessor; nil before the reply
}

func (s *seenWait) set(pos position, watch *framework.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead, s.predecessor, s.holds, s.watch = pos.ahead, pos.predecessor, pos.behindFirst, watch
}

// end closes the watches, but for the watch on the own node, which it returns if there is one.
func (w *waiter) end() (own *framework.Watch) {
	w.predecessor.close()
	w.second.close()
	return w.own.watch
}

// blocker returns the predecessor, which is watched.
func (w *waiter) blocker() Blocker {
	st, _ := w.predecessor.watch.Stat()
	path := zkpath.Join(w.attempt.queue.Dir, w.predecessor.name)
	return Blocker{Ahead: w.attempt.pos.ahead, Path: path, Data: w.predecessor.watch.Data(), Stat: st}
}

// errStale means that the attempt has to list again to know its position.
var errStale = errtype.New("waitqueue: what was listed is out of date", errtype.Other)

// await returns nil when no contender is ahead. If an outage ends before the session does, it costs
// time, and the attempt keeps its node.
//
// If the last listing showed only one node ahead, its deletion grants the lock. No contender can
// get ahead of a node that exists, except as [Queue.MayReplace] says. The watch on the own node
// shows that this node exists, since a server sends events in the order of the changes. While more
// nodes are ahead, the attempt also watches the second predecessor. When only the predecessor is
// left, the listing is then up to date, and its deletion needs no request. If the predecessor is an
// attempt of the same client, its grant shows as much, and the second is not watched.
func (a *Attempt) await(ctx context.Context) error {
	for {
		first, err := a.look(ctx)
		for err == nil && !first {
			first, err = a.waiter.next(ctx)
		}
		switch {
		case err == nil:
			return nil
		case err == errStale: //nolint:errorlint // it is never wrapped
		case ctx.Err() != nil || !Disconnected(err):
			return err
		}
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return err
		}
	}
}

// look reports whether the attempt is the first. If not, it watches what the attempt has to wait for.
func (a *Attempt) look(ctx context.Context) (first bool, err error) {
	pos, err := a.position(ctx)
	if err != nil || pos.predecessor == "" {
		return err == nil, err
	}
	if a.waiter == nil {
		a.waiter = &waiter{attempt: a, long: LongWait{Report: a.queue.OnLongWait}}
	}
	a.pos = pos
	return false, a.waiter.watch(ctx)
}

// Disconnected reports whether err is only for lack of a connection.
func Disconnected(err error) bool {
	return errors.Is(err, framework.ErrNotConnected) || errors.Is(err, framework.ErrUnknownOutcome)
}

// watch reports the attempt's position, and sets the watches for it.
func (w *waiter) watch(ctx context.Context) error {
	pos := w.attempt.pos
	w.attempt.seen.set(pos, w.watchOn(pos.predecessor))
	w.attempt.report(pos.ahead)
	if observer := w.attempt.Observer; observer != nil {
		observer.Waits(pos.ahead)
	}
	err := w.setWatches(ctx)
	w.attempt.seen.set(pos, w.watchOn(pos.predecessor))
	return err
}

// watchOn returns the watch on the predecessor if that has the name, else nil.
func (w *waiter) watchOn(name string) *framework.Watch {
	if w.predecessor.name != name {
		return nil
	}
	return w.predecessor.watch
}

// next waits for the next event, and reports whether the attempt is the first after it. If not, it watches
// what is left to wait for. It returns errStale if only a listing shows the position.
func (w *waiter) next(ctx context.Context) (first bool, err error) {
	for !w.predecessor.gone && !w.second.gone {
		w.predecessor.watch.Recheck()
		select {
		case <-w.predecessor.watch.Fired():
			if !w.predecessor.unseen() {
				return w.advance(ctx)
			}
			if err := w.reread(ctx); err != nil { // the event of either node may have been dropped
				return false, err
			}
		case <-fired(w.second.watch):
			return w.advance(ctx)
		case <-w.granted:
			return w.advance(ctx)
		case <-w.own.watch.Fired():
			return false, errStale
		case <-w.long.Due():
			w.notifyLong()
		case <-w.attempt.hold.Lost():
			return false, w.attempt.hold.Err()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return w.advance(ctx)
}

// notifyLong is a function of its own, so that the stack of each wait need not have its frame.
func (w *waiter) notifyLong() { w.long.Notify(w.blocker()) }

// advance is the end of next after an event of the predecessor or of the second. The position stays that of
// the wait if the attempt is the first now: see BlockedBy.
func (w *waiter) advance(ctx context.Context) (first bool, err error) {
	pos := &w.attempt.pos
	granted := false
	select {
	case <-w.granted:
		*pos, granted = pos.behindHolder(), true
	default:
	}
	switch {
	case pos.deletionGrants && w.predecessor.deleted() && w.own.watch.Valid():
		return true, nil
	case pos.bothDeletionsGrant && w.second.deleted() && !w.predecessor.deleted():
		*pos = pos.withoutSecond()
	case !granted || w.predecessor.deleted():
		return false, errStale
	}
	return false, w.watch(ctx)
}

// setWatches sets the watches that are missing, within one round trip.
func (w *waiter) setWatches(ctx context.Context) error {
	pos := &w.attempt.pos
	var missing []*nodeWatch
	var paths []string
	second := pos.second
	if w.granted = w.predecessorsGrant(pos); w.granted != nil {
		second = ""
	}
	for _, one := range []struct {
		slot *nodeWatch
		name string
	}{{&w.own, w.attempt.self.Name}, {&w.predecessor, pos.predecessor}, {&w.second, second}} {
		if one.slot.retarget(one.name) {
			missing = append(missing, one.slot)
			paths = append(paths, zkpath.Join(w.attempt.queue.Dir, one.name))
		}
	}
	if missing == nil {
		return nil
	}
	watches, errs := w.attempt.client.WatchEach(ctx, framework.WatchData, paths...)
	var fault error
	for i, one := range missing {
		if err := one.set(watches[i], errs[i]); err != nil {
			fault = err
		}
	}
	if observer := w.attempt.Observer; observer != nil && w.predecessor.watch != nil {
		observer.Behind(w.predecessor.watch.Data())
	}
	if fault == nil && !w.ownExists() {
		return errGone
	}
	return fault
}

// reread reads the own node, and not only what an earlier watch found, as setWatches would, and then what
// else is not watched.
func (w *waiter) reread(ctx context.Context) error {
	name := w.own.name
	w.own.close()
	w.own.name = name
	err := w.own.set(w.attempt.client.Watch(ctx, zkpath.Join(w.attempt.queue.Dir, name), framework.WatchData))
	if err != nil {
		return err
	}
	return w.setWatches(ctx)
}

// predecessorsGrant returns a channel that is closed when the predecessor is granted. It returns nil
// if that grant would not be news, or if the predecessor is another client's.
func (w *waiter) predecessorsGrant(pos *position) <-chan struct{} {
	if pos.second == "" || pos.foreign || !w.attempt.queue.inTurn() {
		return nil
	}
	return clientAttemptsOf(w.attempt.client).grantOf(pos.predecessor)
}

// ownExists reports whether the watch on the own node found that node. Another client may have
// deleted it and created another node at its path.
func (w *waiter) ownExists() bool {
	if w.own.gone {
		return false
	}
	st, _ := w.own.watch.Stat()
	return st.Czxid == w.attempt.stat.Czxid
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

// secure makes the grant certain. Breaks of the connection count from then on, also while a
// function of the user's is notified of the grant.
func (a *Attempt) secure(ctx context.Context) error {
	err := a.hold.Secure(ctx)
	a.breaks = a.hold.Breaks()
	return err
}

// grant ends the wait and returns the grant. The attempt keeps its node and its session.
func (a *Attempt) grant() *Grant {
	g := &Grant{
		Znode: hold.Znode{Client: a.client, Session: a.hold, Path: a.node, Stat: a.stat, Breaks: a.breaks},
		Write: a.write,
	}
	g.Own = a.endWait()
	clientAttemptsOf(a.client).remove(a.self.Name, true)
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

// checkWriteNode returns nil if the write node is among the nodes: then it and the attempt's node
// existed at one moment, so no contender behind them was granted before. Otherwise a successor may
// hold the lock, and checkWriteNode returns errGone, so that the attempt's node is deleted.
func (a *Attempt) checkWriteNode(nodes []queuenode.Node) error {
	if queuenode.Index(nodes, a.writeNode().Name) >= 0 {
		return nil
	}
	return errGone
}

// A nodeWatch is the node with the name, "" for none, and a watch on it. It is a data watch, as
// Curator's, because that leaves nothing at the server if the node does not exist.
type nodeWatch struct {
	name  string
	watch *framework.Watch // nil while there is none
	gone  bool             // the node was gone when the watch was to be set
}

// deleted reports whether the node is known to be gone.
func (w *nodeWatch) deleted() bool {
	return w.gone || w.watch != nil && w.watch.Event() == framework.EventDeleted
}

// unseen reports whether the watch has fired because the server may have dropped an event.
func (w *nodeWatch) unseen() bool {
	return w.watch != nil && w.watch.Event() == framework.EventUnseen
}

// retarget makes w the watch of the node with the name, and reports whether that watch has to be
// set. A watch of the same node is kept if it has not fired, or has fired for the node's deletion.
func (w *nodeWatch) retarget(name string) (missing bool) {
	if w.name == name && w.watch != nil && (w.watch.Event() == 0 || w.watch.Event() == framework.EventDeleted) {
		return false
	}
	w.close()
	w.name = name
	return name != ""
}

// set takes over the watch, or the error of the request for it. A node that is gone is no error.
func (w *nodeWatch) set(watch *framework.Watch, err error) error {
	if errors.Is(err, framework.ErrNoNode) {
		w.gone = true
		return nil
	}
	if err == nil {
		w.watch = watch
	}
	return err
}

func (w *nodeWatch) close() {
	if w.watch != nil {
		w.watch.Close()
	}
	*w = nodeWatch{}
}
