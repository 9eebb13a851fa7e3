package waitqueue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// Enqueue creates a node for each of the attempts that has none, by one transaction: all or none.
// The attempts have different directories and belong to one client, whose views may differ. With an
// error each attempt is as it was, or has no node.
func Enqueue(ctx context.Context, attempts []*Attempt) error {
	for {
		var outside []*Attempt
		for _, a := range attempts {
			if a.znode.Session != nil && a.znode.Session.Err() != nil {
				a.leave()
			}
			if a.znode.Path != "" {
				continue
			}
			if err := a.bind(ctx); err != nil {
				return err
			}
			outside = append(outside, a)
		}
		switch len(outside) {
		case 0:
			return nil
		case 1:
			return outside[0].enter(ctx)
		}
		err := framework.ErrSessionEnded // in between
		if outside[0].znode.Session.Session() == outside[len(outside)-1].znode.Session.Session() {
			err = createAll(ctx, outside)
		}
		if !errors.Is(err, framework.ErrSessionEnded) {
			return err
		}
		leaveAll(outside)
		if err := outside[0].rounds.Wait(ctx, 1); err != nil {
			return err
		}
	}
}

func leaveAll(attempts []*Attempt) {
	for _, a := range attempts {
		a.leave()
	}
}

func createAll(ctx context.Context, attempts []*Attempt) error {
	root := attempts[0].znode.Client.Root()
	data := make([][]byte, len(attempts))
	for i, a := range attempts {
		data[i] = a.data() // first: it may be a user's, who may panic
	}
	creates := make([]framework.TxnOp, len(attempts))
	for i, a := range attempts {
		name, opts := a.creation()
		defer a.shortcuts.answered()
		creates[i] = framework.OpCreate(a.znode.Client.AbsolutePath(zkpath.Join(a.queue.Dir, name)), data[i], opts...)
	}
	nodes, err := root.CreateAll(ctx, creates...)
	if err != nil {
		for _, a := range attempts {
			err = a.queue.CreationError(err)
		}
		return err
	}
	for i, a := range attempts {
		_, name := zkpath.Split(nodes[i])
		a.created(zkpath.Join(a.queue.Dir, name))
	}
	return nil
}

// TryGrant lists the queues of the attempts, which have nodes, all at once. It returns the grants
// of the attempts before the first that is not granted. If all are granted, err is nil; otherwise
// it is [ErrBusy] if that attempt has a predecessor, or the error of a request. That attempt and
// those after it keep their nodes. Call [Attempt.ReportGranted] for each grant that is used.
func TryGrant(ctx context.Context, attempts []*Attempt) (grants []*Grant, err error) {
	obstacles := make([]error, len(attempts))
	var wg sync.WaitGroup
	for i, a := range attempts {
		if a.shortcuts.listed() { // along with the creation: no request is needed
			obstacles[i] = a.obstacle(ctx)
			continue
		}
		wg.Go(func() { obstacles[i] = a.obstacle(ctx) })
	}
	wg.Wait()
	for i, a := range attempts {
		err := obstacles[i]
		if err == nil {
			err = a.secure(ctx)
		}
		if err != nil {
			return grants, err
		}
		grants = append(grants, a.grant())
	}
	return grants, nil
}

// obstacle lists once and returns what keeps the attempt from its grant; nil for nothing.
func (a *Attempt) obstacle(ctx context.Context) error {
	pos, err := a.position(ctx)
	if err == nil && pos.predecessor != "" {
		return ErrBusy
	}
	return err
}

// WithdrawAll ends the attempts: it deletes their nodes by one transaction and waits for that. If
// the deletion is not confirmed, WithdrawAll returns why. The deletion then goes on in the
// background, until the nodes are gone or their session has ended.
func WithdrawAll(ctx context.Context, attempts []*Attempt) error {
	var nodes []*hold.Znode
	for _, a := range attempts {
		if a.znode.Path != "" {
			nodes = append(nodes, &a.znode)
		}
	}
	errs := DeleteAll(ctx, nodes)
	leaveAll(attempts)
	for i, err := range errs {
		if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrSessionEnded) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// DeleteAll deletes nodes of one client by one transaction. If that fails, for example because one
// node is gone already, each node is deleted by a request of its own. It returns an error for each node, as
// [framework.Client.Delete] with Guaranteed does.
func DeleteAll(ctx context.Context, nodes []*hold.Znode) []error {
	errs := make([]error, len(nodes))
	var failed error
	if len(nodes) > 1 {
		deletes := make([]framework.TxnOp, len(nodes))
		for i, n := range nodes {
			deletes[i] = framework.OpDelete(n.Client.AbsolutePath(n.Path), framework.AnyVersion)
		}
		if _, failed = nodes[0].Client.Root().Txn(ctx, deletes...); failed == nil {
			return errs
		}
	}
	var wg sync.WaitGroup
	var existed atomic.Bool // one node existed until now, so the transaction deleted none
	for i, n := range nodes {
		wg.Go(func() {
			errs[i] = n.Client.Delete(ctx, n.Path, framework.Guaranteed())
			if errs[i] == nil {
				existed.Store(true)
			}
		})
	}
	wg.Wait()
	if errors.Is(failed, framework.ErrUnknownOutcome) && !existed.Load() {
		for i, err := range errs {
			if errors.Is(err, framework.ErrNoNode) {
				errs[i] = nil // by the transaction
			}
		}
	}
	return errs
}
