package framework

import (
	"context"
	"errors"
)

// A Read is what [Client.GetEach] read of one znode.
type Read struct {
	Data []byte
	Stat Stat
}

// GetEach reads the data and Stat of each of the znodes, as [Client.Get] does, within the
// time of one read: all requests are on their way before any is waited for. It
// returns a Read or an error for each path, in their order; an outage fails all of them. It is
// retried as a whole by the client's policy until ctx ends. If a path is invalid, nothing is read.
func (c *Client) GetEach(ctx context.Context, paths ...string) ([]Read, []error) {
	reads, faults := make([]Read, len(paths)), make([]error, len(paths))
	full := make([]string, len(paths))
	for i, path := range paths {
		full[i] = c.fullPath(path)
		faults[i] = errors.Join(ValidatePath(path), c.core.checkSize(readSize+len(full[i])))
	}
	if err := errors.Join(faults...); err != nil || len(paths) == 0 {
		return reads, wrapEach(ctx, "get", paths, faults)
	}
	found, err := do(ctx, c.core, request{op: "get", path: full[0], session: c.session, repeat: repeatable, reads: true, batch: len(paths)}, func(ctx context.Context, s *session) ([]outcomeOfRead, error) {
		return s.getEach(ctx, full)
	})
	for i := range paths {
		if faults[i] = err; err != nil {
			continue
		}
		if faults[i] = found[i].err; faults[i] == nil {
			reads[i].Stat = found[i].node.stat
			reads[i].Data, faults[i] = c.core.cfg.unpack(found[i].node.data)
		}
	}
	return reads, wrapEach(ctx, "get", paths, faults)
}

// An outcomeOfRead is what was read, or what stood against it.
type outcomeOfRead struct {
	node nodeState
	err  error
}

// getEach returns an error only if the connection failed one of the reads, or ctx ended.
func (s *session) getEach(ctx context.Context, paths []string) ([]outcomeOfRead, error) {
	begun := make([]*pending[nodeState], len(paths))
	for i, path := range paths {
		begun[i] = begin(s, func(w *wire) (nodeState, error) { return w.get(path) })
	}
	found := make([]outcomeOfRead, len(paths))
	for i, p := range begun {
		node, err := p.wait(ctx)
		if ctx.Err() != nil || Retryable(err) || errors.Is(err, ErrClosed) {
			return nil, err // the others have met with the same, or will
		}
		found[i] = outcomeOfRead{node, err}
	}
	return found, nil
}
