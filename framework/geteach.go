package framework

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// A Read is the data and Stat that [Client.GetEach] read of one znode.
type Read struct {
	Data []byte
	Stat Stat
}

// GetEach reads the data and Stat of each of the znodes, as [Client.Get] does, within the time of
// one read: it sends all requests before it waits for a reply. It returns a Read or an error for
// each path, in their order; an outage fails all of them. GetEach is retried as a whole by the
// client's policy until ctx ends. If a path is invalid, nothing is read.
func (c *Client) GetEach(ctx context.Context, paths ...string) ([]Read, []error) {
	reads, faults := make([]Read, len(paths)), make([]error, len(paths))
	found := c.readEach(ctx, "get", paths, faults, (*zkconn.Conn).Get)
	for i := range found {
		if faults[i] == nil {
			reads[i].Stat = statOf(found[i].node.Stat)
			reads[i].Data, faults[i] = c.core.cfg.unpack(found[i].node.Data)
		}
	}
	return reads, wrapEach(ctx, "get", paths, faults)
}

// ChildrenEach lists the children of each of the znodes, as [Client.Children] does, within the time
// of one listing. It returns the names, in no order, and the Stat of the znode itself, or an error for
// each path, in the order of paths. Retries, ctx and outages are as with [Client.GetEach].
func (c *Client) ChildrenEach(ctx context.Context, paths ...string) ([][]string, []Stat, []error) {
	names, stats, faults := make([][]string, len(paths)), make([]Stat, len(paths)), make([]error, len(paths))
	for i, found := range c.readEach(ctx, "children", paths, faults, (*zkconn.Conn).Children) {
		names[i], stats[i] = found.node.Children, statOf(found.node.Stat)
	}
	return names, stats, wrapEach(ctx, "children", paths, faults)
}

// readEach does one kind of read for each path and sets faults. It returns nothing if no request
// was sent, or if an outage failed all of them.
func (c *Client) readEach(
	ctx context.Context, op string, paths []string, faults []error,
	ask func(w *zkconn.Conn, full string) (proto.Node, error),
) []outcomeOfRead {
	usercall.Require("ctx", ctx != nil)
	full := make([]string, len(paths))
	for i, path := range paths {
		full[i] = c.fullPath(path)
		faults[i] = errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full[i])))
	}
	if err := errors.Join(faults...); err != nil || len(paths) == 0 {
		return nil
	}
	rq := request{op: op, path: full[0], session: c.session, repeat: repeatable, reads: true, batch: len(paths)}
	found, err := do(ctx, c.core, rq, func(ctx context.Context, s *session.Session) ([]outcomeOfRead, error) {
		return readEach(ctx, s, full, ask)
	})
	for i := range paths {
		if faults[i] = err; err == nil {
			faults[i] = found[i].err
		}
	}
	return found
}

// An outcomeOfRead is the result of a read, or its fault.
type outcomeOfRead struct {
	node proto.Node
	err  error
}

// readEach returns an error only if the connection failed one of the reads, or ctx ended.
func readEach(
	ctx context.Context, s *session.Session, paths []string, ask func(w *zkconn.Conn, full string) (proto.Node, error),
) ([]outcomeOfRead, error) {
	begun := make([]*session.Pending[proto.Node], len(paths))
	for i, path := range paths {
		begun[i] = session.Begin(s, func(w *zkconn.Conn) (proto.Node, error) { return ask(w, path) })
	}
	found := make([]outcomeOfRead, len(paths))
	for i, p := range begun {
		node, err := p.Wait(ctx)
		ended := ctx.Err() != nil && errors.Is(err, ctx.Err()) // else the reply came before the end
		if ended || Retryable(err) || errors.Is(err, ErrClosed) {
			return nil, err // the other reads fail by the same outage
		}
		found[i] = outcomeOfRead{node, err}
	}
	return found, nil
}
