package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
)

const (
	// deletedTogether is how many znodes one transaction of a DeleteTree deletes, and how many listings
	// are under way at once.
	deletedTogether = 128

	// deletedBytes bounds the paths of one transaction: far below what any server accepts.
	deletedBytes = 64 << 10

	// deleteRounds is how often DeleteTree begins again in one directory, into which others create as fast
	// as it deletes. Together the rounds take half a minute.
	deleteRounds = 256
)

// DeleteTree deletes the znode and everything below it, from the leaves up. It continues until the
// znode is gone or ctx ends, even if other clients delete or create znodes there. Only if they create
// in one directory again and again for half a minute, it ends with [ErrNotEmpty] and names what is
// left. It is not one transaction, but several, of up to 128 znodes each: if it fails, a part is gone. In
// memory it has the names of one directory at each depth, and up to 128 more listings. Requests are retried,
// and fail, as requests of [Client.Delete] are; [ErrNoNode] means that there was no znode.
func (c *Client) DeleteTree(ctx context.Context, path string) error {
	usercall.Require("ctx", ctx != nil)
	full, err := c.deletable(path)
	if err == nil {
		err = c.deleteTree(ctx, full, false)
	}
	return c.callError(ctx, "delete tree", path, err)
}

// deleteTree deletes the znode and everything below it. filled says that the znode has children.
func (c *Client) deleteTree(ctx context.Context, full string, filled bool) error {
	rounds := pace.Rounds()
	for round := 0; ; round++ {
		if err := rounds.Wait(ctx, 1); err != nil {
			return err
		}
		if round > 0 || !filled {
			if done, err := c.deleteEmpty(ctx, full, filled || round > 0); done || err != nil {
				return err
			}
		}
		listed, err := do(ctx, c.core, request{op: "children", path: full, session: c.session}, func(ctx context.Context, s *session.Session) (proto.Node, error) {
			return session.Call(ctx, s, requests.Children(full))
		})
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		if round >= deleteRounds {
			return notEmptyAfter(round, full, listed.Children)
		}
		if done, err := c.deleteChildren(ctx, full, listed.Children); done || err != nil {
			return err
		}
	}
}

// notEmptyAfter is the error of so many rounds, each of which found that the directory had children.
func notEmptyAfter(rounds int, dir string, left []string) error {
	if len(left) == 0 {
		return fmt.Errorf("%w after %d rounds: other clients create children of %s and delete them", ErrNotEmpty, rounds, dir)
	}
	return fmt.Errorf("%w after %d rounds: %s has %d children that others have created, such as %s",
		ErrNotEmpty, rounds, dir, len(left), left[0])
}

// deleteEmpty deletes the znode and reports whether it is gone, or else has to be listed. existed says that it was
// there before: then another has deleted it, as a server does with an empty container.
func (c *Client) deleteEmpty(ctx context.Context, full string, existed bool) (gone bool, err error) {
	tolerated := []error{ErrNotEmpty}
	if existed {
		tolerated = append(tolerated, ErrNoNode)
	}
	x := deletion{session: c.session, path: full, version: AnyVersion}
	err = c.core.delete(ctx, x, false, new(earlierAttempts), tolerated...)
	switch {
	case errors.Is(err, errCreatedSince), errors.Is(err, ErrNotEmpty):
		return false, nil
	case errors.Is(err, ErrNoNode) && (existed || errors.Is(err, ErrUnknownOutcome)):
		return true, nil
	}
	return err == nil, err
}

// deleteChildren deletes the children of the directory and everything below them, and reports whether
// the directory has gone with them: the last transaction includes it, so that no client can create a child between.
func (c *Client) deleteChildren(ctx context.Context, dir string, names []string) (gone bool, err error) {
	if len(names) == 1 { // a transaction would save nothing
		return false, c.deleteBelow(ctx, zkpath.Join(dir, names[0]), false)
	}
	for len(names) > 0 {
		var batch []string
		for size := 0; len(names) > 0 && len(batch) < deletedTogether && size < deletedBytes; names = names[1:] {
			batch = append(batch, zkpath.Join(dir, names[0]))
			size += len(batch[len(batch)-1])
		}
		together := batch
		if len(names) == 0 {
			together = append(batch, dir)
		}
		err := c.deleteTogether(ctx, together)
		switch {
		case err == nil:
			gone = len(names) == 0
			continue
		case !errors.Is(err, zkerr.ErrEarlierAttempt):
			err = c.deleteApart(ctx, batch)
		}
		if err != nil {
			return false, err
		}
	}
	return gone, nil
}

// deleteApart deletes znodes that could not be deleted as one transaction: all that are empty together, and each of
// the others by itself.
func (c *Client) deleteApart(ctx context.Context, paths []string) error {
	rq := request{op: "children", path: paths[0], session: c.session, batch: len(paths)}
	found, err := do(ctx, c.core, rq, func(ctx context.Context, s *session.Session) ([]outcomeOfRead, error) {
		return c.core.readAll(ctx, s, proto.OpGetChildren2, paths)
	})
	if err != nil {
		return err
	}
	var empty []string
	for i, path := range paths {
		if found[i].err == nil && len(found[i].node.Children) == 0 {
			empty = append(empty, path)
		}
	}
	cleared := false
	if len(empty) > 0 {
		err := c.deleteTogether(ctx, empty)
		if errors.Is(err, zkerr.ErrEarlierAttempt) {
			return err
		}
		cleared = err == nil
	}
	for i, path := range paths {
		filled := len(found[i].node.Children) > 0
		if isEmpty := found[i].err == nil && !filled; isEmpty && cleared || errors.Is(found[i].err, ErrNoNode) {
			continue
		}
		found[i] = outcomeOfRead{} // what is below may be large, too
		if err := c.deleteBelow(ctx, path, filled); err != nil {
			return err
		}
	}
	return nil
}

// deleteBelow is deleteTree of a znode that may be gone.
func (c *Client) deleteBelow(ctx context.Context, full string, filled bool) error {
	if err := c.deleteTree(ctx, full, filled); !errors.Is(err, ErrNoNode) {
		return err
	}
	return nil
}

// deleteTogether deletes all the znodes or none. It may be repeated, as it means whatever is at the paths, but not
// in another session: a server that was stopped could still apply the first one, long after DeleteTree.
func (c *Client) deleteTogether(ctx context.Context, paths []string) error {
	ops := make([]TxnOp, len(paths))
	for i, path := range paths {
		ops[i] = TxnOp{kind: txnDelete, path: path, version: AnyVersion}
	}
	rq := request{op: "txn", session: c.session, batch: len(ops), tolerates: []error{ErrNotEmpty, ErrNoNode}}
	var d earlierAttempts
	_, err := do(ctx, c.core, rq, func(ctx context.Context, s *session.Session) ([]TxnResult, error) {
		if d.unknown && s.ID() != d.session {
			return nil, errOtherSession
		}
		d.session = s.ID()
		results, err := multi(ctx, s, ops, ops)
		return results, d.note(err)
	})
	return err
}
