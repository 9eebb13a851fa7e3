package counter

import (
	"bytes"
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

// A state is what a register was at one moment.
type state struct {
	exists  bool
	data    []byte
	version int32
	czxid   int64
	session int64 // in which it is known; 0 for none
}

// same reports whether both are one state. After a restore of the ensemble, another one may have its version and czxid.
func (s state) same(other state) bool {
	return s.exists == other.exists && s.version == other.version && s.czxid == other.czxid && bytes.Equal(s.data, other.data)
}

// read returns the state that the client's server knows.
func (r *register) read(ctx context.Context) (state, error) {
	session := r.client.Session().ID
	data, st, err := r.client.Get(ctx, r.path)
	if errors.Is(err, framework.ErrNoNode) {
		return state{session: session}, nil
	}
	return state{err == nil, data, st.Version, st.Czxid, session}, err
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
// It returns errStale if the register is not, or if the session in which that is known has ended: after a restore of
// the ensemble the version may be that of another state. Any other error but one that wraps
// framework.ErrUnknownOutcome or ErrVersion means that nothing was written.
func (r *register) replace(ctx context.Context, from state, data []byte) (state, error) {
	st, err := r.write(ctx, from, data)
	switch {
	case err != nil:
		return state{}, stale(err)
	case from.exists && st.Czxid != from.czxid:
		return state{}, errRecreated
	}
	return state{true, data, st.Version, st.Czxid, from.session}, nil
}

func (r *register) write(ctx context.Context, from state, data []byte) (st framework.Stat, err error) {
	c := r.client
	if c.State() == framework.ReadOnly { // from may be of a read-only server, and its session may have ended
		return st, framework.ErrReadOnly
	}
	if from.session != 0 {
		c = c.InSession(from.session)
	}
	switch {
	case !from.exists:
		opts := []framework.CreateOption{framework.WithParents(), framework.StatTo(&st)}
		if r.acl != nil {
			opts = append(opts, framework.WithACL(r.acl...))
		}
		_, err = c.Create(ctx, r.path, data, opts...)
		return st, err
	case from.version == framework.AnyVersion:
		return st, ErrVersion
	case from.version == framework.AnyVersion-1: // one write would leave AnyVersion
		results, err := c.Txn(ctx,
			framework.OpSet(r.path, data, from.version), framework.OpSet(r.path, data, framework.AnyVersion))
		if err != nil {
			return st, err
		}
		return results[1].Stat, nil
	}
	return c.Set(ctx, r.path, data, from.version)
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

// stale returns errStale for an error that says that another client has changed the register, or may have.
func stale(err error) error {
	if errors.Is(err, framework.ErrUnknownOutcome) {
		return err
	}
	for _, one := range []error{framework.ErrBadVersion, framework.ErrNodeExists, framework.ErrNoNode, framework.ErrSessionEnded} {
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
		var shown *state // nil for nothing, or an error
		failed := ""     // the error that was shown
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
				shown, failed = nil, err.Error()
				if !pause(ctx, r.client, refusedPause) {
					return
				}
				continue
			}
			failed = ""
			if shown = show(ctx, w, shown, yield); shown == nil {
				return
			}
		}
	}
}

// show yields the state of the watch unless it was shown already, waits for the next change, and closes the watch.
// It returns the state, or nil if that is the end.
func show(ctx context.Context, w *framework.Watch, shown *state, yield func(state, error) bool) *state {
	defer w.Close()
	st, exists := w.Stat()
	now := state{exists: exists, data: w.Data(), version: st.Version, czxid: st.Czxid}
	if (shown == nil || !now.same(*shown)) && !yield(now, nil) || w.Await(ctx) != nil {
		return nil
	}
	return &now
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
