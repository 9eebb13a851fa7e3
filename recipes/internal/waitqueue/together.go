package waitqueue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/docent-go/docent/internal/ctxerr"

	"github.com/docent-go/docent/framework"
)

// EnterAll gives a node to each of the attempts that has none, by one
// transaction: all or none. They have different directories and are of one client,
// whatever their views of it. With an error each attempt is as it was, or without
// a node.
func EnterAll(ctx context.Context, attempts []*Attempt) error {
	for {
		outside, err := bindAll(ctx, attempts)
		switch {
		case err != nil:
			return err
		case len(outside) == 0:
			return nil
		case len(outside) == 1:
			return outside[0].enter(ctx)
		}
		err = createAll(ctx, outside)
		if !ctxerr.Is(err, framework.ErrSessionEnded) {
			return err
		}
		leaveAll(outside)
	}
}

// bindAll returns the attempts that have no node, bound to one session.
func bindAll(ctx context.Context, attempts []*Attempt) ([]*Attempt, error) {
	for {
		var outside []*Attempt
		for _, a := range attempts {
			if a.hold != nil && a.hold.Err() != nil {
				a.leave()
			}
			if a.node != "" {
				continue
			}
			if err := a.bind(ctx); err != nil {
				return nil, err
			}
			outside = append(outside, a)
		}
		if len(outside) == 0 || outside[0].hold.Session() == outside[len(outside)-1].hold.Session() {
			return outside, nil
		}
		leaveAll(outside) // the session ended in between
	}
}

func leaveAll(attempts []*Attempt) {
	for _, a := range attempts {
		a.leave()
	}
}

func createAll(ctx context.Context, attempts []*Attempt) error {
	root := attempts[0].client.Root()
	data := make([][]byte, len(attempts))
	for i, a := range attempts {
		data[i] = a.data() // first: it may be a user's, who may panic
	}
	creates := make([]framework.TxnOp, len(attempts))
	creations := make([]*creation, len(attempts))
	for i, a := range attempts {
		along, end := listingsOf(a.client).begin(a.key)
		defer end()
		creations[i] = a.creation(along)
		path := a.client.AbsolutePath(framework.JoinPath(a.queue.Dir, creations[i].name))
		creates[i] = framework.OpCreate(path, data[i], creations[i].opts...)
	}
	nodes, err := root.CreateAll(ctx, creates...)
	if err != nil {
		return err
	}
	for i, a := range attempts {
		_, name := framework.SplitPath(nodes[i])
		a.created(framework.JoinPath(a.queue.Dir, name), creations[i])
	}
	return nil
}

// GrantAll looks for the attempts, which have entered, all at once, and returns
// the grants of those from the first on that nobody is ahead of. err is nil if
// that is all of them; otherwise it says what stands against the next one:
// [ErrBusy], or why it can't be told. Those behind that one keep their places, free or
// not. Call [Attempt.Arrive] for the grants that are taken.
func GrantAll(ctx context.Context, attempts []*Attempt) (grants []*Grant, err error) {
	obstacles := make([]error, len(attempts))
	var wg sync.WaitGroup
	for i, a := range attempts {
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

// Arrive tells that there is nobody ahead of the attempt any more.
func (a *Attempt) Arrive() { a.tell(0) }

// obstacle looks once and returns what stands against a grant.
func (a *Attempt) obstacle(ctx context.Context) error {
	pos, err := a.look(ctx)
	if err == nil && pos.ahead != "" {
		return ErrBusy
	}
	return err
}

// Anew reports whether an attempt that failed with err has to begin anew: its
// session has ended, or somebody deleted its node.
func Anew(err error) bool {
	return ctxerr.Is(err, errGone) || ctxerr.Is(err, framework.ErrSessionEnded)
}

// WithdrawAll gives the attempts up: it deletes their nodes by one transaction
// and waits for that. What keeps it from being confirmed is returned; then the
// deletion goes on in the background until they are gone or their session has ended.
func WithdrawAll(ctx context.Context, attempts []*Attempt) error {
	var nodes []standing
	for _, a := range attempts {
		if a.node != "" {
			nodes = append(nodes, standing{a.client, a.node})
		}
	}
	errs := deleteAll(ctx, nodes)
	leaveAll(attempts)
	for i, err := range errs {
		if ctxerr.Is(err, framework.ErrNoNode) || ctxerr.Is(err, framework.ErrSessionEnded) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// DeleteAll deletes the nodes of grants, of one client, by one transaction, and
// returns an error for each as [framework.Client.Delete] with Guaranteed would.
func DeleteAll(ctx context.Context, grants []*Grant) []error {
	nodes := make([]standing, len(grants))
	for i, g := range grants {
		nodes[i] = standing{g.Client, g.Path}
	}
	return deleteAll(ctx, nodes)
}

// A standing is a node that stands in a queue.
type standing struct {
	client *framework.Client // bound to its session
	node   string
}

// deleteAll deletes nodes of one client. If the transaction fails, as when one of
// them is gone already, each is deleted for itself.
func deleteAll(ctx context.Context, nodes []standing) []error {
	errs := make([]error, len(nodes))
	var failed error
	if len(nodes) > 1 {
		deletes := make([]framework.TxnOp, len(nodes))
		for i, n := range nodes {
			deletes[i] = framework.OpDelete(n.client.AbsolutePath(n.node), framework.AnyVersion)
		}
		if _, failed = nodes[0].client.Root().Txn(ctx, deletes...); failed == nil {
			return errs
		}
	}
	var wg sync.WaitGroup
	var stood atomic.Bool // one of them was deleted only now, so the transaction deleted none
	for i, n := range nodes {
		wg.Go(func() {
			errs[i] = n.client.Delete(ctx, n.node, framework.Guaranteed())
			if errs[i] == nil {
				stood.Store(true)
			}
		})
	}
	wg.Wait()
	if ctxerr.Is(failed, framework.ErrUnknownOutcome) && !stood.Load() {
		for i, err := range errs {
			if ctxerr.Is(err, framework.ErrNoNode) {
				errs[i] = nil // by the transaction
			}
		}
	}
	return errs
}
