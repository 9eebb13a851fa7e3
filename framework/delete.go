package framework

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// Delete deletes the znode. It is retried by the client's policy until ctx ends. If the reply to an
// attempt was lost, Delete repeats the deletion only if the same znode still exists: then the first
// attempt had no effect. Otherwise the error wraps [ErrUnknownOutcome]. It also wraps [ErrNoNode] if
// there is no znode, because this call or another client deleted it. A znode that may have been
// created since is kept; with [CreatedBy] Delete can tell the znodes apart.
//
// Errors: [ErrNoNode] (not with [Idempotent]), [ErrNotEmpty], [ErrBadVersion] (with [AtVersion]),
// [ErrNoAuth], and the errors of every operation.
//
// With [Guaranteed] the client continues in the background. It does so if Delete could not find out
// that the znode is gone, or was not allowed to delete it. There, too, the client keeps a znode
// that may have been created since, and logs that.
func (c *Client) Delete(ctx context.Context, path string, opts ...DeleteOption) error {
	cfg := deleteConfig{version: AnyVersion}
	faults := applyAll(opts, func(o DeleteOption) { o.applyDelete(&cfg) })
	full, err := c.deletable(path)
	if err = errors.Join(faults, err, cfg.validate()); err != nil {
		cfg.over.tell(false)
		return opError("delete", path, err)
	}
	err = c.core.deleteNow(ctx, cfg.deletion(c.session, full), &cfg)
	if cfg.idempotent && errors.Is(err, ErrNoNode) {
		return nil
	}
	return callError(ctx, "delete", path, err)
}

// deleteNow deletes the znode of x. It hands an unfinished guaranteed deletion to the background,
// also if a function of the user panics.
func (c *core) deleteNow(ctx context.Context, x deletion, cfg *deleteConfig) (err error) {
	d := doubt{chooses: cfg.guaranteed && x.session == 0}
	err = ErrUnknownOutcome // until there is a reply
	defer func() {
		if cfg.guaranteed && x.unfinished(err) {
			err = errors.Join(err, c.deletes.add(x, d))
		} else {
			x.over.tell(err == nil || errors.Is(err, ErrNoNode))
		}
	}()
	return c.delete(ctx, x, byPolicy, &d, cfg.tolerated()...)
}

// Discard deletes the znode in the background, as [Client.Delete] with [Guaranteed] and the options
// does, and does not wait for that. Invalid arguments are logged, and nothing is deleted.
func (c *Client) Discard(path string, opts ...DeleteOption) {
	cfg := deleteConfig{version: AnyVersion}
	faults := applyAll(opts, func(o DeleteOption) { o.applyDelete(&cfg) })
	full, err := c.deletable(path)
	if err = errors.Join(faults, err, cfg.validate()); err != nil {
		cfg.over.tell(false)
		c.core.deletes.logGivenUp(deletion{path: path}, err)
		return
	}
	x := cfg.deletion(c.session, full)
	if err := c.core.deletes.add(x, doubt{chooses: x.session == 0}); err != nil {
		c.core.deletes.logGivenUp(x, err)
	}
}

// DeleteTree deletes the znode and everything below it, from the leaves up. It continues until the
// znode is gone or ctx ends, also if other clients delete or create znodes there. It is not one
// transaction: if it fails, a part is gone. Requests are retried, and fail, as requests of
// [Client.Delete] are; [ErrNoNode] means that there was no znode.
func (c *Client) DeleteTree(ctx context.Context, path string) error {
	usercall.Require("ctx", ctx != nil)
	full, err := c.deletable(path)
	if err == nil {
		err = c.deleteTree(ctx, full)
	}
	return callError(ctx, "delete tree", path, err)
}

func (c *Client) deleteTree(ctx context.Context, full string) error {
	x := deletion{session: c.session, path: full, version: AnyVersion}
	rounds := pace.Rounds()
	for stood := false; ; stood = true {
		if err := rounds.Wait(ctx, 1); err != nil {
			return err
		}
		tolerated := []error{ErrNotEmpty}
		if stood { // already deleted, as when a server reaps an empty container
			tolerated = append(tolerated, ErrNoNode)
		}
		err := c.core.delete(ctx, x, byPolicy, new(doubt), tolerated...)
		switch {
		case errors.Is(err, errCreatedSince):
			continue
		case errors.Is(err, ErrNoNode) && (stood || errors.Is(err, ErrUnknownOutcome)):
			return nil
		case !errors.Is(err, ErrNotEmpty):
			return err
		}
		listed, err := do(ctx, c.core, request{op: "children", path: full, session: c.session, repeat: repeatable}, func(ctx context.Context, s *session.Session) (proto.Node, error) {
			return session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Children(full) })
		})
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		for _, name := range listed.Children {
			if err := c.deleteTree(ctx, JoinPath(full, name)); err != nil && !errors.Is(err, ErrNoNode) {
				return err
			}
		}
	}
}

// deletable returns the path in full, or all faults of a deletion of it.
func (c *Client) deletable(path string) (string, error) {
	full := c.fullPath(path)
	err := errors.Join(ValidatePath(path), c.core.checkSize(deleteSize+len(full)))
	if err == nil && full == "/" {
		err = errors.New("the root can't be deleted")
	}
	return full, err
}

// delete deletes the znode of x. It returns a tolerated error, but no observer counts that as a
// failure. d is the doubt that earlier attempts at the same deletion have left.
func (c *core) delete(ctx context.Context, x deletion, n attempts, d *doubt, tolerated ...error) error {
	rq := request{op: "delete", path: x.path, session: x.session, repeat: repeatable, tolerates: tolerated, single: n == oneAttempt}
	_, err := do(ctx, c, rq, func(ctx context.Context, s *session.Session) (struct{}, error) {
		return struct{}{}, d.note(x.attempt(ctx, s, d))
	})
	return err
}

// attempt makes one attempt at a deletion.
func (x deletion) attempt(ctx context.Context, s *session.Session, d *doubt) error {
	if x.atEpoch {
		return x.deleteAtEpoch(ctx, s, d)
	}
	if err := x.check(ctx, s, d); err != nil {
		return err
	}
	return session.Effect(ctx, s, func(w *zkconn.Conn) error { return w.Delete(x.path, x.version) })
}

// unfinished reports whether the deletion that failed with err may still be done. If the znode ends
// with a session, contenders may wait for it until then. So the deletion is repeated, whatever a
// server replies to it or to the reads that precede it, until the znode is certainly gone or another
// one. If not, no contender waits for the znode, and a reply ends the deletion.
func (x deletion) unfinished(err error) bool {
	if errors.Is(err, ErrReadOnly) {
		return true
	}
	for _, final := range []error{ErrNoNode, ErrBadVersion, ErrNotEmpty, ErrSessionEnded, ErrClosed, errCreatedSince} {
		if errors.Is(err, final) {
			return false
		}
	}
	return err != nil && (x.session != 0 || noAnswer(err))
}

// noAnswer reports whether err means that there was no reply, neither to the deletion nor to the reads
// that precede it.
func noAnswer(err error) bool {
	switch {
	case errors.Is(err, zkerr.ErrEarlierAttempt):
		return false
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return true
	}
	return errors.Is(err, ErrNotConnected) || errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrAuthFailed)
}
