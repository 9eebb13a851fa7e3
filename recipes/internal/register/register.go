// Package register has a znode whose data clients replace, each under the version that it has read.
// A change is applied once, or not at all, or its error wraps framework.ErrUnknownOutcome.
package register

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/errtype"
)

// ErrVersion is returned for a change of a znode whose version is −1. Nothing is written then. If
// another client deleted the znode and created it again, the change may have been applied to the new
// znode. ErrVersion then says so, after the fact.
var ErrVersion = errtype.New("the znode's version can't be relied on", "version")

// ErrStale means that another client has changed the register since it was read. It is never
// wrapped.
var ErrStale = errors.New("changed by another client")

// errRecreated is the ErrVersion of a change that was applied to another znode.
var errRecreated = fmt.Errorf("%w: it was deleted and created again, and the change was made", ErrVersion)

// A Register is the znode. It is immutable.
type Register struct {
	Client *framework.Client
	Path   string
	ACL    []acl.Entry // nil for the client's
}

// A State is what a register was at one moment. The zero State is that of a missing znode.
type State struct {
	Exists  bool
	Data    []byte
	version int32
	czxid   int64
}

// Read returns the state that the client's server knows.
func (r *Register) Read(ctx context.Context) (State, error) {
	data, st, err := r.Client.Get(ctx, r.Path)
	if errors.Is(err, framework.ErrNoNode) {
		return State{}, nil
	}
	return State{err == nil, data, st.Version, st.Czxid}, err
}

// Update replaces the data by what fn makes of the state, again and again until no other client came
// in between. An error of fn ends it, and nothing is written.
func (r *Register) Update(ctx context.Context, fn func(State) ([]byte, error)) error {
	for {
		at, err := r.Read(ctx)
		if err != nil {
			return err
		}
		data, err := fn(at)
		if err != nil {
			return err
		}
		if _, err = r.Replace(ctx, at, data); err != ErrStale { //nolint:errorlint // it is never wrapped
			return err
		}
	}
}

// Replace writes data if the register is still in the state from, and returns the state after that.
// It returns ErrStale if the register is not. Any other error but one that wraps
// framework.ErrUnknownOutcome or ErrVersion means that nothing was written.
func (r *Register) Replace(ctx context.Context, from State, data []byte) (State, error) {
	st, err := r.write(ctx, from, data)
	switch {
	case err != nil:
		return State{}, stale(err)
	case from.Exists && st.Czxid != from.czxid:
		return State{}, errRecreated
	}
	return State{true, data, st.Version, st.Czxid}, nil
}

func (r *Register) write(ctx context.Context, from State, data []byte) (st framework.Stat, err error) {
	switch {
	case !from.Exists:
		opts := []framework.CreateOption{framework.WithParents(), framework.StatTo(&st)}
		if r.ACL != nil {
			opts = append(opts, framework.WithACL(r.ACL...))
		}
		_, err = r.Client.Create(ctx, r.Path, data, opts...)
		return st, err
	case from.version == framework.AnyVersion:
		return st, ErrVersion
	case from.version == framework.AnyVersion-1: // one write would leave AnyVersion
		results, err := r.Client.Txn(ctx,
			framework.OpSet(r.Path, data, from.version), framework.OpSet(r.Path, data, framework.AnyVersion))
		if err != nil {
			return st, err
		}
		return results[1].Stat, nil
	}
	return r.Client.Set(ctx, r.Path, data, from.version)
}

// ReadLatest returns a state that the register had during the call: it has everything that was
// committed before. It costs a transaction that changes nothing and a read. A check of the version
// would cost less and prove less: a znode that was deleted and created again may have the same
// version, and a server takes version −1 for any.
func (r *Register) ReadLatest(ctx context.Context) (State, error) {
	if err := r.Client.Ready(ctx); err != nil {
		return State{}, err
	}
	return r.Read(ctx)
}

// stale returns ErrStale for an error that says that another client has changed the register.
func stale(err error) error {
	if errors.Is(err, framework.ErrUnknownOutcome) {
		return err
	}
	for _, one := range []error{framework.ErrBadVersion, framework.ErrNodeExists, framework.ErrNoNode} {
		if errors.Is(err, one) {
			return ErrStale
		}
	}
	return err
}
