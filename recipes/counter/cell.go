package counter

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
)

// A cell is a znode whose data clients replace, each under the version that it has read.
type cell struct {
	client *framework.Client
	path   string
	acl    []acl.Entry // nil for the client's
}

// A state is what a cell was at one moment. The zero state is that of a missing znode.
type state struct {
	exists  bool
	version int32
	czxid   int64
	data    []byte
}

// errStale means that another client has changed the cell since it was read.
var errStale = errors.New("changed by another client")

// errRecreated is the ErrVersion of a change that was applied to another znode.
var errRecreated = fmt.Errorf("%w: it was deleted and created again, and the change was made", ErrVersion)

func (c *cell) read(ctx context.Context) (state, error) {
	data, st, err := c.client.Get(ctx, c.path)
	if errors.Is(err, framework.ErrNoNode) {
		return state{}, nil
	}
	return state{err == nil, st.Version, st.Czxid, data}, err
}

// replace writes data if the cell is still in the state from, and returns the state after that. It
// returns errStale if the cell is not, and otherwise leaves no doubt but for ErrUnknownOutcome.
func (c *cell) replace(ctx context.Context, from state, data []byte) (state, error) {
	st, err := c.write(ctx, from, data)
	switch {
	case err != nil:
		return state{}, stale(err)
	case from.exists && st.Czxid != from.czxid:
		return state{}, errRecreated
	}
	return state{true, st.Version, st.Czxid, data}, nil
}

func (c *cell) write(ctx context.Context, from state, data []byte) (st framework.Stat, err error) {
	switch {
	case !from.exists:
		opts := []framework.CreateOption{framework.WithParents(), framework.StatTo(&st)}
		if c.acl != nil {
			opts = append(opts, framework.WithACL(c.acl...))
		}
		_, err = c.client.Create(ctx, c.path, data, opts...)
		return st, err
	case from.version == framework.AnyVersion:
		return st, ErrVersion
	case from.version == framework.AnyVersion-1: // one write would leave AnyVersion
		results, err := c.client.Txn(ctx,
			framework.OpSet(c.path, data, from.version), framework.OpSet(c.path, data, framework.AnyVersion))
		if err != nil {
			return st, err
		}
		return results[1].Stat, nil
	}
	return c.client.Set(ctx, c.path, data, from.version)
}

// confirm returns nil if the cell is still in the state, by a transaction that only checks. It
// returns errStale if the cell is not.
func (c *cell) confirm(ctx context.Context, in state) error {
	version := in.version
	if !in.exists {
		version = framework.AnyVersion
	}
	_, err := c.client.Txn(ctx, framework.OpCheck(c.path, version))
	switch {
	case !in.exists && errors.Is(err, framework.ErrNoNode):
		return nil
	case !in.exists && err == nil:
		return errStale
	case errors.Is(err, framework.ErrUnknownOutcome): // nothing was to be applied
		return fmt.Errorf("%w: the check was not answered", framework.ErrNotConnected)
	}
	return stale(err)
}

// stale returns errStale for an error that says that another client has changed the cell.
func stale(err error) error {
	if errors.Is(err, framework.ErrUnknownOutcome) {
		return err
	}
	for _, one := range []error{framework.ErrBadVersion, framework.ErrNodeExists, framework.ErrNoNode} {
		if errors.Is(err, one) {
			return errStale
		}
	}
	return err
}
