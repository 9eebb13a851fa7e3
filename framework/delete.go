package framework

import (
	"context"
	"errors"
)

// Delete deletes the znode. It is retried by the client's policy until ctx
// ends. Where the reply to an attempt was lost and the next one finds no znode,
// it is gone, and Delete returns nil. If it finds a znode that may have been created since, it
// leaves that alone and returns [ErrUnknownOutcome]; with [CreatedBy] it knows. Errors: [ErrNoNode] (not with
// [Idempotent]), [ErrNotEmpty], [ErrBadVersion] (see [AtVersion]; it wraps
// [ErrUnknownOutcome] too where an earlier attempt's reply was lost),
// [ErrNoAuth], and those of every operation.
//
// With [Guaranteed] the client goes on trying in the background when Delete
// could not find out that the znode is gone, or was not allowed to delete it.
// A znode that may have been created since is left alone there, too, and the client logs it.
func (c *Client) Delete(ctx context.Context, path string, opts ...DeleteOption) error {
	cfg := deleteConfig{version: AnyVersion}
	for _, opt := range opts {
		opt.applyDelete(&cfg)
	}
	full, err := c.deletable(path, cfg.version)
	if err = errors.Join(err, cfg.validate()); err != nil {
		cfg.over.tell()
		return opError("delete", path, err)
	}
	err = c.core.deleteNow(ctx, cfg.deletion(c.session, full), &cfg)
	if cfg.idempotent && errors.Is(err, ErrNoNode) {
		return nil
	}
	return callError(ctx, "delete", path, err)
}

// deleteNow deletes what x says, and hands a guaranteed deletion that is unfinished to the
// background, also if a function of the user's panics.
func (c *core) deleteNow(ctx context.Context, x deletion, cfg *deleteConfig) (err error) {
	var doubt doubt
	err = ErrUnknownOutcome // until there is an answer
	defer func() {
		if cfg.guaranteed && x.unfinished(err) {
			err = errors.Join(err, c.deletes.add(x, doubt))
		} else {
			x.over.tell()
		}
	}()
	return c.delete(ctx, x, lookAfterDoubt, &doubt, cfg.tolerated()...)
}

// Discard has the znode deleted in the background, as [Client.Delete] with
// [Guaranteed] and the options goes on to do, and does not wait for it. Invalid arguments are
// logged, and nothing is deleted.
func (c *Client) Discard(path string, opts ...DeleteOption) {
	cfg := deleteConfig{version: AnyVersion}
	for _, opt := range opts {
		opt.applyDelete(&cfg)
	}
	full, err := c.deletable(path, cfg.version)
	if err = errors.Join(err, cfg.validate()); err != nil {
		cfg.over.tell()
		c.core.deletes.logGivenUp(deletion{path: path}, err)
		return
	}
	x := cfg.deletion(c.session, full)
	if err := c.core.deletes.add(x, doubt{}); err != nil {
		c.core.deletes.logGivenUp(x, err)
	}
}

// DeleteTree deletes the znode and everything below it, from the leaves up.
// What others delete or create there in the meantime does not disturb it: it
// goes on until the znode is gone or ctx ends. It is not one transaction: if it
// fails, a part is gone. Requests are retried, and fail, as those of
// [Client.Delete] are; [ErrNoNode] means that there was no znode.
func (c *Client) DeleteTree(ctx context.Context, path string) error {
	full, err := c.deletable(path, AnyVersion)
	if err == nil {
		err = c.deleteTree(ctx, full)
	}
	return callError(ctx, "delete tree", path, err)
}

func (c *Client) deleteTree(ctx context.Context, full string) error {
	x := deletion{session: c.session, path: full, version: AnyVersion}
	for stood := false; ; stood = true {
		tolerated := []error{ErrNotEmpty}
		if stood { // whoever deletes it now, it is gone: a server that reaps an empty container, say
			tolerated = append(tolerated, ErrNoNode)
		}
		err := c.core.delete(ctx, x, lookAfterDoubt, new(doubt), tolerated...)
		switch {
		case errors.Is(err, errCreatedSince):
			continue
		case stood && errors.Is(err, ErrNoNode):
			return nil
		case !errors.Is(err, ErrNotEmpty):
			return err
		}
		listed, err := do(ctx, c.core, request{op: "children", path: full, session: c.session, repeat: repeatable}, func(ctx context.Context, s *session) (nodeState, error) {
			return call(ctx, s, func(w *wire) (nodeState, error) { return w.children(full) })
		})
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		for _, name := range listed.children {
			if err := c.deleteTree(ctx, JoinPath(full, name)); err != nil && !errors.Is(err, ErrNoNode) {
				return err
			}
		}
	}
}

// deletable returns the path in full, or all that is wrong with a deletion of it.
func (c *Client) deletable(path string, version int32) (string, error) {
	full := c.fullPath(path)
	err := errors.Join(ValidatePath(path), validateVersion(version), c.core.checkSize(deleteSize+len(full)))
	if err == nil && full == "/" {
		err = errors.New("the root can't be deleted")
	}
	return full, err
}

// delete deletes what x says. An error that is tolerated is returned, and is no
// failure to those who look on. d is what earlier attempts at the same deletion have left.
func (c *core) delete(ctx context.Context, x deletion, look looking, d *doubt, tolerated ...error) error {
	rq := request{op: "delete", path: x.path, session: x.session, repeat: repeatable, tolerates: tolerated, single: look == lookFirst}
	_, err := do(ctx, c, rq, func(ctx context.Context, s *session) (struct{}, error) {
		if x.atEpoch {
			return struct{}{}, x.deleteAtEpoch(ctx, s, d)
		}
		if x.czxid == 0 {
			if err := d.settle(ctx, s, x.path); err != nil {
				return struct{}{}, err
			}
		} else if look == lookFirst || d.earlier {
			if stands, err := x.stands(ctx, s); err != nil || !stands {
				return struct{}{}, err
			}
		}
		_, err := call(ctx, s, func(w *wire) (struct{}, error) { return struct{}{}, w.Delete(x.path, x.version) })
		if d.earlier && errors.Is(err, ErrNoNode) {
			err = nil
		}
		return struct{}{}, d.about(err, ErrBadVersion)
	})
	return err
}

// unfinished reports whether the deletion that failed with err may still be done. If the
// znode ends with a session, contenders may wait for it until then: whatever else a server
// answers, the deletion is repeated. If not, no contender waits for the znode.
func (x deletion) unfinished(err error) bool {
	if errors.Is(err, ErrReadOnly) {
		return true
	}
	for _, final := range []error{ErrNoNode, ErrBadVersion, ErrNotEmpty, ErrSessionEnded, ErrClosed, errEarlierAttempt} {
		if errors.Is(err, final) {
			return false
		}
	}
	return err != nil && (x.session != 0 || noAnswer(err))
}

// noAnswer reports whether err is for lack of an answer, and not an answer itself.
func noAnswer(err error) bool {
	return errors.Is(err, ErrNotConnected) || errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrAuthFailed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
