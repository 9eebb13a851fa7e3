package waitqueue

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
)

// A waiter is what an attempt has while it waits. A watch is a data watch, as Curator's, because that
// leaves nothing at the server if the node does not exist.
type waiter struct {
	attempt *Attempt
	pos     position // what it waits for

	own         nodeWatch // if an operator deletes the node, the attempt queues again
	predecessor nodeWatch
	also        nodeWatch

	long LongWait
}

// await returns nil when no contender is ahead: it lists, watches what it has to wait for, and lists again
// after an event. If an outage ends before the session does, it costs time, and the attempt keeps its node.
func (a *Attempt) await(ctx context.Context) error {
	for {
		pos, err := a.position(ctx)
		known := true
		for err == nil && known && pos.predecessor != "" {
			if err = a.awaitChange(ctx, pos); err == nil {
				pos, known = a.shortcuts.after(a.waiter)
			}
		}
		switch {
		case err == nil && known:
			return nil
		case err != nil && (ctx.Err() != nil || !Disconnected(err)):
			return err
		}
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return err
		}
	}
}

// Disconnected reports whether err is only for lack of a connection.
func Disconnected(err error) bool {
	return errors.Is(err, framework.ErrNotConnected) || errors.Is(err, framework.ErrUnknownOutcome)
}

// awaitChange watches what the position waits for, and returns nil after an event.
func (a *Attempt) awaitChange(ctx context.Context, pos position) error {
	if a.waiter == nil {
		a.waiter = &waiter{attempt: a, long: LongWait{Report: a.queue.OnLongWait}}
	}
	w := a.waiter
	if w.pos = pos; w.predecessor.name != pos.predecessor {
		w.predecessor.close()
	}
	a.show(pos, w.predecessor.watch)
	a.Report(pos.ahead + a.queue.Beyond)
	a.Telemetry.Waits(pos.ahead + a.queue.Beyond)
	err := w.watch(ctx)
	a.show(pos, w.predecessor.watch)
	if err == nil {
		err = w.next(ctx)
	}
	return err
}

// next waits for the next event, or for a node that was gone when it was to be watched.
func (w *waiter) next(ctx context.Context) error {
	for !w.predecessor.gone && !w.also.gone {
		w.predecessor.watch.Recheck()
		select {
		case <-w.predecessor.watch.Fired():
			if w.predecessor.watch.Event() != framework.EventUnseen {
				return nil
			}
			if err := w.reread(ctx); err != nil { // the event of either node may have been dropped
				return err
			}
		case <-fired(w.also.watch):
			return nil
		case <-w.pos.news:
			return nil
		case <-w.own.watch.Fired():
			return nil
		case <-w.long.Due():
			w.notifyLong()
		case <-w.attempt.znode.Session.Lost():
			return w.attempt.znode.Session.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// notifyLong is a function of its own, so that the stack of each wait need not have its frame.
func (w *waiter) notifyLong() {
	st, _ := w.predecessor.watch.Stat()
	path := zkpath.Join(w.attempt.queue.Dir, w.predecessor.name)
	w.long.Notify(Blocker{Ahead: w.pos.ahead + w.attempt.queue.Beyond, Path: path, Data: w.predecessor.watch.Data(), Stat: st})
}

// watch sets the watches that are missing, within one round trip. The watch on the own node is the first.
func (w *waiter) watch(ctx context.Context) error {
	var missing []*nodeWatch // no function of its own has it and paths: so they are on the stack
	var paths []string
	for _, one := range []struct {
		slot *nodeWatch
		name string
	}{{&w.own, w.attempt.self.Name}, {&w.predecessor, w.pos.predecessor}, {&w.also, w.pos.also}} {
		if one.slot.retarget(one.name) {
			missing = append(missing, one.slot)
			paths = append(paths, zkpath.Join(w.attempt.queue.Dir, one.name))
		}
	}
	if missing == nil {
		return nil
	}
	watches, errs := w.attempt.znode.Client.WatchEach(ctx, framework.WatchData, paths...)
	var fault error
	for i, one := range missing {
		if err := one.set(watches[i], errs[i]); err != nil {
			fault = err
		}
	}
	if w.predecessor.watch != nil {
		w.attempt.Telemetry.Behind(w.predecessor.watch.Data())
	}
	if fault == nil && w.lost() {
		fault = errGone
	}
	return fault
}

// lost reports whether the own node is gone. There may be one of another client's at the same path.
func (w *waiter) lost() bool {
	if w.own.gone {
		return true
	}
	st, _ := w.own.watch.Stat()
	return st.Czxid != w.attempt.znode.Stat.Czxid
}

// reread reads the own node, and not only what an earlier watch found, as watch would, and then what
// else is not watched.
func (w *waiter) reread(ctx context.Context) error {
	name := w.own.name
	w.own.close()
	w.own.name = name
	err := w.own.set(w.attempt.znode.Client.Watch(ctx, zkpath.Join(w.attempt.queue.Dir, name), framework.WatchData))
	if err != nil {
		return err
	}
	return w.watch(ctx)
}

// endWait closes the attempt's watches, but for the one on the own node, which it returns.
func (a *Attempt) endWait() (own nodeWatch) {
	if a.waiter == nil {
		return nodeWatch{}
	}
	own = a.waiter.own
	a.waiter.predecessor.close()
	a.waiter.also.close()
	a.waiter = nil
	a.show(position{}, nil)
	return own
}

// A nodeWatch is the node with the name, "" for none, and a watch on it.
type nodeWatch struct {
	name  string
	watch *framework.Watch // nil while there is none
	gone  bool             // the node was gone when the watch was to be set
}

// deleted reports whether the node is known to be gone.
func (w *nodeWatch) deleted() bool {
	return w.gone || w.watch != nil && w.watch.Event() == framework.EventDeleted
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

// fired returns a channel that is closed when the watch fires; nil if there is no watch.
func fired(w *framework.Watch) <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Fired()
}
