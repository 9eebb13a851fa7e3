package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/recipes/node"
)

// leaveGrace is how long Run waits for the deletion of the member's znode. After that the deletion
// continues in the background.
const leaveGrace = 10 * time.Second

// pause is the minimum interval between two calls of serve for one key, and between two writes of the members.
const pause = time.Second

// Run joins the members, and serves keys until ctx ends. For each key that falls to this process it
// acquires a lease and calls serve, on a goroutine of its own. The context of serve ends when the key
// moves to another member (its cause is [ErrMoved]), when the lease is lost (a [*lease.LostError]), or when
// Run ends. serve has to return then: the key is served by no other member before, unless the lease is
// lost. If serve returns nil earlier, Run calls it again after a second. The Fence of the lease grows
// from server to server of a key. Outages don't end Run. It returns
//
//   - an error that serve returns while its context lasts, as it is. An error that comes after the key has
//     moved or its lease was lost is logged as a warning, and Run goes on: functions report the end of
//     their context by all kinds of errors;
//   - an error that wraps ctx's, when ctx has ended, joined with one of serve that is not the end of its
//     context, and [framework.ErrClosed], when the client is closed;
//   - a permanent error, such as [framework.ErrNoAuth], even if it concerns one key: a member that went on would
//     keep that key from those that can serve it.
//
// When Run returns, this process serves no key. Its znodes are gone, or the client deletes them in the
// background; without a connection, Run does not wait for that. If serve panics, Run ends, and panics
// with the value; if serve ends its goroutine by runtime.Goexit, Run returns an error. While another process has
// the id, Run serves no key, and logs a warning. If this process has joined and may not join again later, Run logs
// a warning and tries to. If it may not list the members any more, the keys stay where they are for half a minute,
// with a warning, and then Run ends: others could not take their share of the keys otherwise. A second Run of this
// Partition at a time is an error, and so is one with the id of another Run of the client. If serve is nil, Run
// returns an error.
func (p *Partition) Run(
	ctx context.Context, serve func(ctx context.Context, key string, l *lease.Lease) error,
) error {
	usercall.Require("ctx", ctx != nil)
	if err := args.Function("serve", serve != nil); err != nil {
		return recipe.Error(p.client, "run", p.path, err)
	}
	if p.running.Swap(true) {
		return recipe.Error(p.client, "run", p.path, errors.New("this Partition runs already"))
	}
	defer p.running.Store(false)
	r := &run{Partition: p, serve: serve, served: make(map[string]context.CancelCauseFunc)}
	err := r.run(ctx)
	if r.panicked != "" {
		panic(r.panicked)
	}
	switch {
	case r.fault != nil && ctx.Err() == nil:
		return r.fault // of serve, as it is
	case r.fault != nil:
		err = errors.Join(err, r.fault)
	}
	return recipe.CallError(ctx, p.client, "run", p.path, err)
}

// A run is a call of Run.
type run struct {
	*Partition
	serve  func(ctx context.Context, key string, l *lease.Lease) error
	ctx    context.Context // ends with the run
	stop   context.CancelCauseFunc
	served map[string]context.CancelCauseFunc // ends the service of each key of this member
	keys   sync.WaitGroup                     // the goroutines of keys

	mu       sync.Mutex // guards following
	fault    error      // the first one of serve
	panicked string     // what serve panicked with, and where
}

func (r *run) run(ctx context.Context) (err error) {
	r.ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	members, err := cache.New(r.client, r.members(), cache.WithDepth(1), &r.cfg)
	if err != nil {
		return err
	}
	self, err := node.New(r.client, zkpath.Join(r.members(), r.cfg.id), packed([]byte(digestOf(r.Partition.keys))), &r.cfg)
	if err != nil {
		return errors.Join(err, members.Close())
	}
	r.rebalance(members, self)
	failed := context.Cause(r.ctx) // before stop gives it another
	r.stop(nil)
	leaving, cancel := contender.Leaving(r.ctx, r.client, leaveGrace)
	defer cancel()
	left := self.Close(leaving) // so that other members take the keys as soon as they are free
	r.keys.Wait()
	closed := members.Close()
	if ctx.Err() != nil {
		return args.Ended(ctx, r.client)
	}
	return cmp.Or(failed, errors.Join(framework.ErrClosed, left, closed)) // by the client
}

// recovered ends the run if the goroutine of a key has panicked with v: Run panics then. It also does so if the
// goroutine was ended by what serves the key, because no member would serve it from then on.
func (r *run) recovered(key string, returned bool, v any) {
	if v == nil {
		if !returned {
			r.stop(fmt.Errorf("key %q: what serves it has ended its goroutine (runtime.Goexit)", key))
		}
		return
	}
	text := fmt.Sprintf("%v\n\nin the function that serves a key:\n%s", v, debug.Stack())
	r.mu.Lock()
	r.panicked = text
	r.mu.Unlock()
	r.stop(nil)
}

// keep serves the key whenever this process has its lease, until ctx ends. It returns an error if the
// run has to end.
func (r *run) keep(ctx context.Context, key string) error {
	contest := r.contest(key)
	warn := func(message string, err error) { r.warn(message, contest.Path, err) }
	failed, err := contest.Repeat(ctx, pause, warn, func(ctx context.Context, l *lease.Lease) error {
		return r.serve(ctx, key, l)
	})
	switch {
	case failed != nil && errors.Is(context.Cause(ctx), ErrMoved):
		warn("the function returned an error after its key had moved", failed)
		return nil
	case failed != nil:
		r.mu.Lock()
		first := r.fault == nil
		r.fault = cmp.Or(r.fault, failed)
		r.mu.Unlock()
		if !first {
			warn("the function for this key failed, too", failed)
		}
		return failed
	case ctx.Err() != nil:
		return nil //nolint:nilerr // err is why the key's work has ended
	}
	return err
}

func (r *run) warn(message, path string, err error) {
	r.client.Logger().Named("partition").Warn(message,
		zap.String(locktel.AttrPath, r.client.AbsolutePath(path)), zap.Error(err))
}
