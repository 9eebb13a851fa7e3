package barrier

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/membership"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A former has, for each barrier of a client, the members that were in when a Leave of the client stopped
// waiting for them. Their round is not over. The client's next Enter waits until they have left, before it
// creates a znode: otherwise they would let it in, and a member of theirs that leaves would wait for it.
type former struct {
	mu    sync.Mutex // held for no request
	byDir map[string]*formerRound
}

// A formerRound has the names of members. A znode that was created after the zxid is of a later round,
// although it may have the same name.
type formerRound struct {
	listed bool // else the others are not known yet
	names  []string
	zxid   int64
}

func (g *gate) former() *former {
	return framework.Shared(g.client, func() *former { return &former{byDir: make(map[string]*formerRound)} })
}

// remember notes the members that a Leave no longer waits for; nil for none.
func (g *gate) remember(r *formerRound) {
	f, dir := g.former(), g.full()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byDir, dir)
	if r == nil || r.listed && len(r.names) == 0 {
		return
	}
	for one := range f.byDir { // whichever: a client that never comes again needs none
		if len(f.byDir) >= maxFormer {
			delete(f.byDir, one)
		}
	}
	f.byDir[dir] = r
}

// remembers reports whether a Leave stopped waiting for members, which may be in still.
func (g *gate) remembers() bool {
	f, dir := g.former(), g.full()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byDir[dir] != nil
}

// maxFormer bounds the barriers whose members are remembered.
const maxFormer = 1000

// awaitFormer returns when no member of the client's former round is in any more. It waits across outages.
func (g *gate) awaitFormer(ctx context.Context, long *waitqueue.LongWait) error {
	f, dir := g.former(), g.full()
	f.mu.Lock()
	round := f.byDir[dir]
	f.mu.Unlock()
	if round == nil {
		return nil
	}
	left := *round
	for rounds := pace.Rounds(); !left.listed || len(left.names) > 0; {
		if err := g.awaitNext(ctx, &left, long); err != nil && (ctx.Err() != nil || !waitqueue.Disconnected(err)) {
			return err
		}
		if err := rounds.Wait(ctx, 1); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.byDir, func(_ string, one *formerRound) bool { return one == round })
	return nil
}

// awaitNext lists the members that are left, or waits for a change of the next one, and takes it out if it has left.
func (g *gate) awaitNext(ctx context.Context, left *formerRound, long *waitqueue.LongWait) error {
	if !left.listed {
		return g.listFormer(ctx, left)
	}
	gone, err := g.awaitMember(ctx, left.names[0], left.zxid, long)
	if gone {
		left.names = left.names[1:]
	}
	return err
}

// listFormer lists the members of a round that no Leave has listed: those whose znodes are older than ready, which
// exists until all of them have left. If ready was made again in between, the members of that later round are in as
// well, and leave without the caller.
func (g *gate) listFormer(ctx context.Context, left *formerRound) error {
	st, exists, err := membership.ExistsBehind(ctx, g.client, g.ready()) // the server of the next session may be behind
	if err != nil {
		return err
	}
	d, err := g.list(ctx, g.client)
	if err = except(err, framework.ErrNoNode); err != nil {
		return err
	}
	if left.listed = true; exists {
		left.names, left.zxid = membersOf(d.names), st.Czxid
	}
	return nil
}

// awaitMember looks once whether the member of the former round has left, and waits for a change if not.
func (g *gate) awaitMember(ctx context.Context, name string, zxid int64, long *waitqueue.LongWait) (gone bool, err error) {
	path := zkpath.Join(g.path, name)
	watch, err := g.client.Watch(ctx, path, framework.WatchData)
	if errors.Is(err, framework.ErrNoNode) && ctx.Err() == nil {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer watch.Close()
	st, _ := watch.Stat()
	if st.Czxid > zxid {
		return true, nil
	}
	return false, long.Await(ctx, nil, func() waitqueue.Blocker {
		return waitqueue.Blocker{Ahead: 1, Path: path, Data: watch.Data(), Stat: st}
	}, watch, nil, nil)
}
