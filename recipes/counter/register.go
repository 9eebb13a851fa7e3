package counter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
)

// errStale means that another client has changed the register since it was read. It is never
// wrapped.
var errStale = errtype.New("changed by another client", errtype.Other)

// errRecreated is the ErrVersion of a change that was applied to another znode.
var errRecreated = fmt.Errorf("%w: it was deleted and created again, and the change was made", ErrVersion)

// A register is the znode. It is immutable.
type register struct {
	client *framework.Client
	path   string
	acl    []acl.Entry // nil for the client's
}

// A state is what a register was at one moment. The zero state is that of a missing znode.
type state struct {
	exists  bool
	data    []byte
	version int32
	czxid   int64
}

// read returns the state that the client's server knows.
func (r *register) read(ctx context.Context) (state, error) {
	data, st, err := r.client.Get(ctx, r.path)
	if errors.Is(err, framework.ErrNoNode) {
		return state{}, nil
	}
	return state{err == nil, data, st.Version, st.Czxid}, err
}

// update replaces the data by what fn makes of the state, again and again until no other client came
// in between. An error of fn ends it, and nothing is written.
func (r *register) update(ctx context.Context, fn func(state) ([]byte, error)) error {
	for {
		at, err := r.read(ctx)
		if err != nil {
			return err
		}
		data, err := fn(at)
		if err != nil {
			return err
		}
		if _, err = r.replace(ctx, at, data); err != errStale { //nolint:errorlint // it is never wrapped
			return err
		}
	}
}

// replace writes data if the register is still in the state from, and returns the state after that.
// It returns errStale if the register is not. Any other error but one that wraps
// framework.ErrUnknownOutcome or ErrVersion means that nothing was written.
func (r *register) replace(ctx context.Context, from state, data []byte) (state, error) {
	st, err := r.write(ctx, from, data)
	switch {
	case err != nil:
		return state{}, stale(err)
	case from.exists && st.Czxid != from.czxid:
		return state{}, errRecreated
	}
	return state{true, data, st.Version, st.Czxid}, nil
}

func (r *register) write(ctx context.Context, from state, data []byte) (st framework.Stat, err error) {
	switch {
	case !from.exists:
		opts := []framework.CreateOption{framework.WithParents(), framework.StatTo(&st)}
		if r.acl != nil {
			opts = append(opts, framework.WithACL(r.acl...))
		}
		_, err = r.client.Create(ctx, r.path, data, opts...)
		return st, err
	case from.version == framework.AnyVersion:
		return st, ErrVersion
	case from.version == framework.AnyVersion-1: // one write would leave AnyVersion
		results, err := r.client.Txn(ctx,
			framework.OpSet(r.path, data, from.version), framework.OpSet(r.path, data, framework.AnyVersion))
		if err != nil {
			return st, err
		}
		return results[1].Stat, nil
	}
	return r.client.Set(ctx, r.path, data, from.version)
}

// readLatest returns a state that the register had during the call: it has everything that was
// committed before. It costs a transaction that changes nothing and a read. A check of the version
// would cost less and prove less: a znode that was deleted and created again may have the same
// version, and a server takes version −1 for any.
func (r *register) readLatest(ctx context.Context) (state, error) {
	if err := r.client.Ready(ctx); err != nil {
		return state{}, err
	}
	return r.read(ctx)
}

// stale returns errStale for an error that says that another client has changed the register.
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

// refusedPause is the time between two attempts to read a znode that may not be read: no server notifies
// of a change of an ACL.
const refusedPause = 5 * time.Second

// all returns the state, now and whenever it changes, the latest alone. An error that no retry can fix
// is returned once, until there is a state again or another error. The sequence ends with ctx, with the
// client, or when the loop is left.
func (r *register) all(ctx context.Context) iter.Seq2[state, error] {
	return func(yield func(state, error) bool) {
		shown := int64(-1) // mzxid of what was shown, 0 for no znode, -1 for nothing or an error
		failed := ""       // the error that was shown
		for rounds := pace.Rounds(); ; {
			w, err := r.watch(ctx)
			switch {
			case ctx.Err() != nil || errors.Is(err, framework.ErrClosed):
				return
			case framework.Retryable(err) || errors.Is(err, framework.ErrReadOnly):
				if r.client.AwaitConnected(ctx) != nil || rounds.Wait(ctx, 1) != nil {
					return
				}
				continue
			case err != nil:
				if err.Error() != failed && !yield(state{}, err) {
					return
				}
				shown, failed = -1, err.Error()
				if !pause(ctx, r.client, refusedPause) {
					return
				}
				continue
			}
			failed = ""
			st, exists := w.Stat()
			if st.Mzxid != shown {
				shown = st.Mzxid
				if !yield(state{exists, w.Data(), st.Version, st.Czxid}, nil) {
					w.Close()
					return
				}
			}
			err = w.Await(ctx)
			w.Close()
			if err != nil {
				return
			}
		}
	}
}

// watch watches the znode, or its creation.
func (r *register) watch(ctx context.Context) (*framework.Watch, error) {
	for rounds := pace.Rounds(); ; {
		if err := rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
		w, err := r.client.Watch(ctx, r.path, framework.WatchData)
		if !errors.Is(err, framework.ErrNoNode) {
			return w, err
		}
		w, err = r.client.Watch(ctx, r.path, framework.WatchExists)
		if err != nil {
			return nil, err
		}
		if _, exists := w.Stat(); !exists {
			return w, nil
		}
		w.Close()
	}
}

// pause waits for d, and reports false if ctx ends first or the client is closed.
func pause(ctx context.Context, c *framework.Client, d time.Duration) bool {
	return pace.Sleep(ctx, d) == nil && c.State() != framework.Closed
}
