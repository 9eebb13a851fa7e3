package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/division"
	"github.com/docent-go/docent/recipes/internal/settle"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/node"
)

// leaveGrace is how long Run waits for the deletion of the member's znode. After that the deletion
// continues in the background.
const leaveGrace = 10 * time.Second

// Run joins the members, and serves keys until ctx ends. For each key that falls to this process it
// acquires a lease and calls serve, on a goroutine of its own. The context of serve ends when the key
// moves to another member (its cause is [ErrMoved]), when the lease is lost (a [*lease.LostError]), or when
// Run ends. serve has to return then: the key is served by no other member before, unless the lease is
// lost. If serve returns nil earlier, Run calls it again after a second. The Fence of the lease grows
// from server to server of a key. Outages don't end Run. It returns
//
//   - an error of serve that is not the end of its context, as it is;
//   - an error that wraps ctx's, when ctx has ended, and [framework.ErrClosed], when the client is
//     closed;
//   - a permanent error, such as [framework.ErrNoAuth].
//
// When Run returns, this process serves no key. Its znodes are gone, or the client deletes them in the
// background. If serve panics, Run ends, and panics with
// the value. If another process has the id, Run waits until that one has left, and logs a
// warning. A second Run of this Partition at a time is an error. Run panics if serve is nil.
func (p *Partition) Run(
	ctx context.Context, serve func(ctx context.Context, key string, l *lease.Lease) error,
) error {
	if serve == nil {
		panic("partition: Run with a nil function")
	}
	if p.running.Swap(true) {
		return recipe.Error("run", p.path, errors.New("this Partition runs already"))
	}
	defer p.running.Store(false)
	r := &run{Partition: p, serve: serve, served: make(map[string]context.CancelCauseFunc)}
	err := r.run(cause.Inside(ctx))
	if r.panicked != "" {
		panic(r.panicked)
	}
	if r.fault != nil {
		return r.fault // of serve, as it is
	}
	return recipe.CallError(ctx, "run", p.path, err)
}

func (r *run) run(ctx context.Context) (err error) {
	r.ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	dir := framework.JoinPath(r.path, "members")
	members, err := cache.New(r.client, dir, cache.WithDepth(1), cache.WithName(r.cfg.name))
	if err != nil {
		return err
	}
	opts := []node.Option{node.WithName(r.cfg.name)}
	if r.cfg.acl != nil {
		opts = append(opts, node.WithACL(r.cfg.acl...))
	}
	self, err := node.New(r.client, framework.JoinPath(dir, r.cfg.id), []byte(division.Digest(r.Partition.keys)), opts...)
	if err != nil {
		return errors.Join(err, members.Close())
	}
	r.keys.Go(func() { r.join(self) })
	inDir := func(s *cache.Snapshot) []division.Member { return membersOf(s, dir) }
	for all := range settle.Changes(r.ctx, members.Snapshots, inDir, slices.Equal, r.cfg.settle) {
		r.divide(all)
	}
	failed := context.Cause(r.ctx) // before stop gives it another
	r.stop(nil)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
	defer cancel()
	left := self.Close(leaving) // so that other members take the keys as soon as they are free
	r.keys.Wait()
	closed := members.Close()
	return cmp.Or(ctx.Err(), failed, errors.Join(framework.ErrClosed, left, closed)) // by the client
}

// join waits until this process is a member. It stops the run if that can't be.
func (r *run) join(self *node.Node) {
	switch err := self.Await(r.ctx); {
	case err == nil || r.ctx.Err() != nil:
	case errors.Is(err, node.ErrTaken):
		r.warn("another process has the id: waiting until it has left", r.path, err)
	case errors.Is(err, framework.ErrNoAuth):
		r.stop(err)
	}
}

// membersOf returns the members in the snapshot, in the order of their ids.
func membersOf(s *cache.Snapshot, dir string) (all []division.Member) {
	for id, n := range s.Children(dir) {
		all = append(all, division.Member{ID: id, Digest: string(n.Data)})
	}
	return all
}

// divide begins to serve the keys that fall to this member, and ends the service of all others.
func (r *run) divide(all []division.Member) {
	mine := division.Share(r.Partition.keys, all, r.cfg.id)
	for key, end := range r.served {
		if _, found := slices.BinarySearch(mine, key); !found {
			end(ErrMoved)
			delete(r.served, key)
		}
	}
	for _, key := range mine {
		if r.served[key] != nil {
			continue
		}
		ctx, end := context.WithCancelCause(r.ctx)
		r.served[key] = end
		r.keys.Go(func() { // ends with ctx
			defer end(nil)
			defer r.recoverPanic()
			if err := r.keep(ctx, key); err != nil {
				r.stop(err)
			}
		})
	}
}

// recoverPanic ends the run if the goroutine of a key panics.
func (r *run) recoverPanic() {
	if v := recover(); v != nil {
		r.mu.Lock()
		r.panicked = fmt.Sprintf("%v\n\nin the function that serves a key:\n%s", v, debug.Stack())
		r.mu.Unlock()
		r.stop(nil)
	}
}
