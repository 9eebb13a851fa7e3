package framework

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
)

// CreateAll creates ephemeral znodes by one transaction, all or none, and returns their paths. The
// operations come from [OpCreate], each with [Ephemeral] and [Protected]. Of the other options they
// take [Sequential], [WithParents], [WithACL], [ListTo], and [StatTo]. StatTo stores what is known
// without a read: all fields but the times.
//
// CreateAll is retried as Create is. If the reply to an attempt was lost, CreateAll looks for the
// znodes. If another client has deleted some of them by then, CreateAll deletes the others and
// creates all of them again. If it fails nevertheless, some znodes may exist or may still be
// created. The client deletes these in the background until they are gone or their session has
// ended.
//
// If ctx ends first, the error wraps ctx's error, and [ErrUnknownOutcome] if a request was sent. If
// an operation fails, the error wraps a [*TxnError] that names it.
func (c *Client) CreateAll(ctx context.Context, creates ...TxnOp) ([]string, error) {
	usercall.Require("ctx", ctx != nil)
	g, err := c.newGroup(creates)
	if err != nil {
		return nil, c.opError("create all", "", err)
	}
	bound, err := c.sessionOf(g.ops)
	if err != nil {
		return nil, c.callError(ctx, "create all", "", err)
	}
	rq := request{op: "create all", session: bound, batch: len(creates)}
	err = ErrUnknownOutcome // until there is a reply: a function of the user may panic
	defer func() {
		for _, cr := range g.creations {
			cr.conclude(err)
		}
	}()
	made, err := do(ctx, c.core, rq, g.attempt)
	if err != nil {
		return nil, c.callError(ctx, "create all", "", err)
	}
	paths := make([]string, len(made))
	for i, cr := range g.creations {
		cr.store(&made[i])
		paths[i] = cr.client.viewPath(made[i].path)
	}
	return paths, nil
}

// A group is one call of CreateAll.
type group struct {
	ops       []TxnOp // as the caller gave them, each in its view
	full      []TxnOp // as the client sends them
	creations []*creation
}

// newGroup returns the group, or all faults of the operations.
func (c *Client) newGroup(creates []TxnOp) (*group, error) {
	if len(creates) == 0 {
		return nil, errors.New("operations: must be at least one")
	}
	g := &group{ops: c.inViews(creates)}
	var faults []error
	size := headSize + multiOpSize
	for i, op := range g.ops {
		cr, err := op.newGroupMember()
		if err != nil {
			faults = append(faults, op.fault(i, err))
			continue
		}
		op = TxnOp{kind: txnCreate, path: cr.path, data: cr.data, flags: cr.flags(), acl: cr.acls}
		g.ops[i].acl = op.acl
		size += op.size()
		g.full, g.creations = append(g.full, op), append(g.creations, cr)
	}
	return g, errors.Join(append(faults, c.core.checkSize(size))...)
}

func (op TxnOp) newGroupMember() (*creation, error) {
	if op.kind != txnCreate {
		return nil, errors.New("must come from OpCreate")
	}
	cr, err := op.view.newCreation(op.path, op.data, op.opts)
	if err == nil && (!cr.has(withProtected) || cr.has(withIdempotent|withWhenOver)) {
		err = errors.New("options: must have Ephemeral and Protected, and neither Idempotent nor WhenOver")
	}
	return cr, err
}

// attempt makes one attempt: it returns all znodes, or the error that prevents one.
func (g *group) attempt(ctx context.Context, s *session.Session) ([]znode, error) {
	made, err := g.findEarlier(ctx, s)
	if err != nil || made != nil {
		return made, err
	}
	made, err = g.send(ctx, s)
	if n, _ := culpritOf(err); n >= 0 && errors.Is(err, ErrNoNode) && g.creations[n].has(withParents) {
		return nil, restartUnless(g.makeParents(ctx, s, n))
	}
	return made, err
}

// findEarlier returns the znodes that an earlier attempt has left. If some of them are missing, it
// deletes the others and returns nil.
func (g *group) findEarlier(ctx context.Context, s *session.Session) ([]znode, error) {
	made := make([]znode, 0, len(g.creations))
	for _, cr := range g.creations {
		found, err := cr.findProtected(ctx, s)
		if err != nil {
			return nil, err
		}
		if found != nil {
			made = append(made, *found)
		}
	}
	if len(made) == len(g.creations) {
		return made, nil
	}
	for _, found := range made {
		if err := unlessGone(session.Effect(ctx, s, requests.Delete(found.path, AnyVersion))); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// send sends the transaction, then the requested listings, and waits for the replies.
func (g *group) send(ctx context.Context, s *session.Session) ([]znode, error) {
	before := s.Zxid()
	p := session.Begin(s, txnRequest(g.full))
	var dirs []string
	for _, cr := range g.creations {
		dirs = cr.listed(dirs)
	}
	lists := sendReads(s, g.creations[0].client.core.limits(), proto.OpGetChildren, dirs)
	got, err := p.Wait(ctx)
	results, err := got.outcome(g.ops, err)
	if err == nil {
		err = checkMade(g.full, results)
	}
	var names [][]string
	if err == nil {
		names = lists.names(ctx)
	} else {
		lists.withdraw()
	}
	made := make([]znode, len(g.creations))
	for i, cr := range g.creations {
		names = cr.storeLists(names)
		switch {
		case errors.Is(err, ErrUnknownOutcome):
			cr.mayHaveMade(s, before, p.Done())
		case err == nil:
			made[i] = znode{results[i].Path, Stat{
				Czxid: got.zxid, Mzxid: got.zxid, Pzxid: got.zxid,
				EphemeralOwner: s.ID(), DataLength: int32(len(cr.data)),
			}}
		}
	}
	return made, err
}

// makeParents creates what is missing above the znodes from the n-th on: the znodes before it had
// their parents. It looks for all parents at the same time. If the user's ACL provider panics, the
// panic reaches the caller.
func (g *group) makeParents(ctx context.Context, s *session.Session, n int) error {
	var wg sync.WaitGroup
	faults := make([]error, len(g.creations))
	seen := make(map[string]bool)
	var panicked atomic.Pointer[any]
	for i, cr := range g.creations[n:] {
		dir, _ := zkpath.Split(cr.path)
		if !cr.has(withParents) || seen[dir] {
			continue
		}
		seen[dir] = true
		wg.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panicked.Store(&v)
				}
			}()
			parent, err := cr.makeParents(ctx, s)
			faults[n+i] = errors.Join(err, explained(parentMade(ctx, parent), txnCreate, dir, cr.aclOf(dir)))
		})
	}
	wg.Wait()
	if v := panicked.Load(); v != nil {
		panic(*v)
	}
	return errors.Join(faults...)
}
