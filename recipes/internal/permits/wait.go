package permits

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// createPermits makes sure that the attempt has its znodes and knows the number of permits. It returns the
// names of all children of the permits' directory.
func (a *attempt) createPermits(ctx context.Context) (names []string, err error) {
	if err := a.watchNumber(ctx, a.turn.Client); err != nil {
		return nil, err
	}
	leases := a.pool.leases()
	if a.nodes == nil {
		a.nodes, names, a.pathNames, err = a.addNodes(ctx, a.n)
		a.kindsChecked = false
		if err != nil || names != nil {
			return names, err
		}
	}
	names, _, err = a.turn.Client.Children(ctx, leases.Dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// addNodes creates n permits' znodes in the session of the attempt's place in the queue, all or none,
// whatever other znodes exist there. names are those of all children of their
// directory, and pathNames those of the directory above it. Both are read after the znodes were created; nil
// if they are still to be listed. lists are listings for which the same holds.
func (a *attempt) addNodes(
	ctx context.Context, n int, lists ...framework.CreateOption,
) (added []*hold.Znode, names, pathNames []string, err error) {
	leases := a.pool.leases()
	path := zkpath.Join(leases.Dir, leaseKind)
	stats, options, creates := make([]framework.Stat, n), make([][]framework.CreateOption, n), make([]framework.TxnOp, n)
	for i := range n {
		options[i] = []framework.CreateOption{
			framework.Ephemeral(), framework.Protected(), framework.WithParents(), framework.Sequential(), framework.StatTo(&stats[i]),
		}
		if leases.ACL != nil {
			options[i] = append(options[i], framework.WithACL(leases.ACL...))
		}
		if i == 0 {
			options[i] = append(append(options[i], framework.ListTo("", &names), framework.ListTo(a.pool.Path, &pathNames)), lists...)
		}
		creates[i] = framework.OpCreate(path, a.data, options[i]...)
	}
	paths := make([]string, n)
	if n == 1 {
		paths[0], err = a.turn.Client.Create(ctx, path, a.data, options[0]...)
	} else {
		paths, err = a.turn.Client.CreateAll(ctx, creates...)
	}
	if err != nil {
		return nil, nil, nil, a.pool.leases().CreationError(err)
	}
	for i, path := range paths {
		added = append(added, &hold.Znode{Client: a.turn.Client, Session: a.turn.Session, Path: path, Stat: stats[i]})
	}
	return added, names, pathNames, nil
}

// checkKinds returns [waitqueue.ErrMixed] if a contender of another kind came to the directory at the
// semaphore's path before the attempt, which has its znodes. If that contender is to be refused itself,
// because one of permits, the children of the permits' directory, is older, checkKinds returns its path: it
// has to be gone first.
func (a *attempt) checkKinds(ctx context.Context, permits []string) (behind string, err error) {
	names := a.pathNames
	if names == nil {
		if names, _, err = a.turn.Client.Children(ctx, a.pool.Path); err != nil {
			return "", err
		}
	}
	a.pathNames = nil
	unknown, err := waitqueue.Unknown(ctx, a.turn.Client, a.pool.Path, names, nil)
	if err != nil {
		return "", err
	}
	if others := append(queuenode.Contenders(names), unknown...); len(others) > 0 {
		behind, err = a.pool.leases().OtherAhead(ctx, a.turn.Client, a.pool.Path, others,
			queuenode.Sort(permits, queuenode.LeaseKind), a.nodes[0].Stat.Czxid)
	}
	if err != nil || behind != "" {
		return zkpath.Join(a.pool.Path, behind), err
	}
	a.kindsChecked = true
	return "", nil
}

// awaitGone returns nil when the znode may be gone, and when the attempt's place in the queue has to be
// looked at.
func (a *attempt) awaitGone(ctx context.Context, path string) error {
	if err := a.watchTurn(ctx); err != nil {
		return err
	}
	watch, err := a.turn.Client.Watch(ctx, path, framework.WatchData)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer watch.Close()
	a.queue.Report(1)
	return a.awaitFired(ctx, watch, path)
}

// among reports whether the names contain all of the attempt's znodes. If they don't, a znode is
// gone: the session that created it read the list, so the list is no older than the znode.
func (a *attempt) among(names []string) bool {
	exist := make(map[string]bool, len(names))
	for _, name := range names {
		exist[name] = true
	}
	return a.nodes != nil && !slices.ContainsFunc(a.nodes, func(node *hold.Znode) bool {
		_, own := zkpath.Split(node.Path)
		return !exist[own]
	})
}

// owns reports whether the znode at path is one of the attempt's.
func (a *attempt) owns(path string) bool {
	return slices.ContainsFunc(a.nodes, func(node *hold.Znode) bool { return node.Path == path })
}

// observe reports the holders to telemetry, while the attempt is the first in the queue.
func (a *attempt) observe(ctx context.Context, leases []string) {
	if a.acq == nil {
		return
	}
	a.acq.Waits(1)
	dir := LeasesDir(a.pool.Path)
	for _, name := range leases {
		path := zkpath.Join(dir, name)
		if !a.owns(path) {
			a.acq.BehindNode(ctx, a.turn.Client, path)
		}
	}
}

// awaitChange waits for a change that may concern the attempt, and returns the names of the
// permits' znodes.
func (a *attempt) awaitChange(ctx context.Context) ([]string, error) {
	for {
		if err := a.watchTurn(ctx); err != nil {
			return nil, err
		}
		if err := a.watchNumber(ctx, a.turn.Client); err != nil {
			return nil, err
		}
		watch, err := a.turn.Client.Watch(ctx, LeasesDir(a.pool.Path), framework.WatchChildren)
		if errors.Is(err, framework.ErrNoNode) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		names := watch.Children()
		waits := a.among(names) && len(names) > a.number.permits
		if waits {
			err = a.awaitFired(ctx, watch, a.oldest(names))
		}
		watch.Close()
		if !waits || err != nil {
			return names, err
		}
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
	}
}

// oldest returns the path of the first znode of names that is another contender's.
func (a *attempt) oldest(names []string) string {
	leases := a.pool.leases()
	for _, node := range queuenode.Sort(names, leaseKind) {
		path := zkpath.Join(leases.Dir, node.Name)
		if !a.owns(path) {
			return path
		}
	}
	return leases.Dir // the znodes are another program's
}

// awaitFired returns nil when a watch has fired, or may have missed something. The attempt waits for the
// znode at blocker, maybe among others.
func (a *attempt) awaitFired(ctx context.Context, watch *framework.Watch, blocker string) error {
	err := a.long.Await(ctx, a.turn.Session, func() waitqueue.Blocker {
		data, st, _ := a.turn.Client.Get(ctx, blocker) // rarely, so it may cost a request; an error costs these fields
		return waitqueue.Blocker{Ahead: 1, Path: blocker, Data: data, Stat: st}
	}, watch, a.own, a.number.watch)
	if err == nil && watch.Event() == framework.EventUnseen { // and the other watches' events may be dropped, too
		closeWatch(a.own)
		a.own = nil // to be read again
		a.forgetNumber()
	}
	return err
}

// watchTurn keeps a watch on the znode in the queue. If an operator deletes it, the successor
// becomes the first too. Two attempts that wait for the end of each other's permits would wait
// forever, so this attempt then deletes its znodes.
func (a *attempt) watchTurn(ctx context.Context) error {
	if a.own != nil && a.own.Event() == 0 {
		return nil
	}
	closeWatch(a.own)
	var err error
	a.own, err = a.turn.Client.Watch(ctx, a.turn.Path, framework.WatchData)
	if errors.Is(err, framework.ErrNoNode) {
		return errTurnLost
	}
	return err
}

// watchNumber keeps the number of permits up to date, and a watch on it.
func (a *attempt) watchNumber(ctx context.Context, c *framework.Client) (err error) {
	if a.number.isKnown() {
		return nil
	}
	a.forgetNumber()
	a.number.permits, a.number.watch, err = a.pool.Permits.watch(ctx, c, a.pool.ACL)
	a.number.known = err == nil
	return err
}

func (a *attempt) forgetNumber() {
	closeWatch(a.number.watch)
	a.number = numberWatch{}
}
