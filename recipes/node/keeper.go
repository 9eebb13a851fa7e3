package node

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A keeper makes the requests of a Node, and knows what they have shown.
type keeper struct {
	node    *Node
	session int64             // the client's; an ephemeral znode is to belong to it
	client  *framework.Client // bound to the session
	former  map[int64]bool    // sessions in which a znode at the path may have been created

	path    string           // of the znode, or where it is to be created
	znode   framework.Stat   // as it was last seen; its Czxid is 0 if the Node has no znode
	written int64            // number of the content that the znode got
	watch   *framework.Watch // of the znode, or of what is in its way; nil for none
	touched time.Time        // when the child "touch" was last written

	failures int // attempts in a row
}

// run keeps the znode. New starts it; it ends with the Node or the client, and Close waits for it.
func (k *keeper) run() {
	n := k.node
	defer close(n.done)
	defer n.cancel()
	for {
		n.mu.Lock()
		want := n.want
		n.mu.Unlock()
		err := k.bring(n.ctx, want)
		if n.ctx.Err() != nil || errors.Is(err, framework.ErrClosed) {
			n.gone(framework.ErrClosed)
			return
		}
		n.settle(want, k.path, err)
		k.await(err)
	}
}

// bring returns nil once the znode exists with the content and is watched.
func (k *keeper) bring(ctx context.Context, want content) error {
	for {
		if err := k.bind(ctx); err != nil {
			return err
		}
		var err error
		switch {
		case k.znode.Czxid == 0:
			err = k.create(ctx, want)
		case k.watch == nil || !k.watch.Valid():
			err = k.look(ctx, want)
		case k.written != want.number:
			err = k.write(ctx, want)
		case k.node.cfg.ttlSet && time.Since(k.touched) >= k.node.cfg.ttl/2:
			err = k.touch(ctx)
		default:
			return nil
		}
		if err != nil && !errors.Is(err, framework.ErrSessionEnded) {
			return err
		}
	}
}

// bind waits for a session. Znodes of an earlier session are no longer the Node's.
func (k *keeper) bind(ctx context.Context) error {
	c, cfg := k.node.client, &k.node.cfg
	if err := c.AwaitConnected(ctx); err != nil {
		return err
	}
	id := c.Session().ID
	if id == k.session {
		return nil
	}
	k.session, k.client = id, c.InSession(id)
	if cfg.sequential && k.znode.Czxid != 0 {
		c.Discard(k.path, framework.CreatedBy(k.znode.Czxid)) // no other client creates a znode of its name
	}
	if !cfg.lasting() {
		k.path, k.znode = k.node.path, framework.Stat{}
	}
	return nil
}

// create creates the znode and watches it: within one round trip, unless the znode is sequential.
func (k *keeper) create(ctx context.Context, want content) error {
	k.former[k.session] = true
	var st framework.Stat
	var watch *framework.Watch
	path, err := k.client.Create(ctx, k.path, want.data,
		k.node.cfg.create(framework.StatTo(&st), framework.WatchTo(&watch))...)
	k.replace(watch)
	if errors.Is(err, framework.ErrNodeExists) {
		return k.look(ctx, want)
	}
	if err != nil {
		return err
	}
	k.path, k.znode, k.written, k.touched = path, st, want.number, time.Time{}
	k.former = map[int64]bool{k.session: true}
	k.node.tel.Created(ctx)
	return nil
}

// look watches the path and looks at the znode that is there. It deletes one of a former session.
func (k *keeper) look(ctx context.Context, want content) error {
	watch, err := k.client.Watch(ctx, k.path, framework.WatchExists)
	if err != nil {
		return err
	}
	k.replace(watch)
	st, exists := watch.Stat()
	own := exists && st.Czxid == k.znode.Czxid
	if own && st.Mzxid != k.znode.Mzxid && k.written == want.number {
		k.node.overwritten()
	}
	if !own && k.znode.Czxid != 0 {
		k.path = k.node.path
		k.node.gone(framework.ErrNoNode)
	}
	if k.znode = st; own || !exists {
		return nil
	}
	k.znode.Czxid = 0
	switch owner := st.EphemeralOwner; {
	case k.node.cfg.lasting() && !isSession(owner):
		k.znode, k.written = st, 0
		return nil
	case owner != k.session && k.former[owner]:
		err := k.client.Delete(ctx, k.path, framework.CreatedBy(st.Czxid), framework.AtVersion(st.Version))
		return unless(err, framework.ErrNoNode, framework.ErrBadVersion)
	}
	return ErrTaken
}

// isSession reports whether the owner of a znode is a session: not 0, as that of a persistent znode,
// and not what servers give to containers and TTL znodes, but to no session.
func isSession(owner int64) bool {
	return owner != 0 && owner != math.MinInt64 && uint64(owner)>>56 != 0xff
}

// write writes the content, unless another client has written to the znode: then the keeper looks.
func (k *keeper) write(ctx context.Context, want content) error {
	st, err := k.client.Set(ctx, k.path, want.data, k.znode.Version)
	if err == nil {
		k.znode, k.written = st, want.number
		return nil
	}
	k.replace(nil)
	return unless(err, framework.ErrNoNode, framework.ErrBadVersion)
}

// touch writes the child by which the ensemble knows that the znode is kept.
func (k *keeper) touch(ctx context.Context) error {
	_, err := k.client.CreateOrSet(ctx, framework.JoinPath(k.path, "touch"), []byte{},
		append(k.node.cfg.acl, framework.TTL(k.node.cfg.ttl))...)
	if err == nil {
		k.touched = time.Now()
		return nil
	}
	k.replace(nil)
	return unless(err, framework.ErrNoNode) // then the znode is gone
}

// unless returns err, or nil if it is one of those that the keeper looks into by itself.
func unless(err error, known ...error) error {
	for _, one := range known {
		if errors.Is(err, one) {
			return nil
		}
	}
	return err
}

// replace makes watch the keeper's.
func (k *keeper) replace(watch *framework.Watch) {
	if k.watch != nil {
		k.watch.Close()
	}
	k.watch = watch
}

// await waits until there is something to do after an attempt that ended with err.
func (k *keeper) await(err error) {
	var fired <-chan struct{}
	if k.watch != nil && (err == nil || k.watch.Event() == 0) {
		fired = k.watch.Fired()
	}
	var due <-chan time.Time
	if delay := k.delay(err); delay > 0 {
		due = time.After(delay)
	}
	select {
	case <-fired:
	case <-due:
	case <-k.node.poke:
	case <-k.node.ctx.Done():
	}
}

// The pause after an attempt that failed doubles with each one, and is partly random.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// delay returns after how long the keeper makes an attempt if it learns of nothing; 0 for never.
func (k *keeper) delay(err error) time.Duration {
	switch {
	case err == nil && k.node.cfg.ttlSet:
		return max(1, time.Until(k.touched.Add(k.node.cfg.ttl/2)))
	case err == nil:
		k.failures = 0
		return 0
	case errors.Is(err, ErrTaken): // a server may drop the event of the deletion
		return waitqueue.RecheckDelay(k.node.client)
	}
	pause := min(firstPause<<min(k.failures, 10), maxPause)
	k.failures++
	return pause/2 + rand.N(pause/2)
}

// end deletes the znode. It is called after run has ended.
func (k *keeper) end(ctx context.Context) error {
	defer k.replace(nil)
	if k.znode.Czxid == 0 || k.node.cfg.lasting() {
		return nil
	}
	known := []framework.DeleteOption{framework.CreatedBy(k.znode.Czxid), framework.Guaranteed(), framework.Idempotent()}
	err := k.client.Delete(ctx, k.path, known...)
	return unless(err, framework.ErrSessionEnded, framework.ErrClosed) // the znode ends with its session
}
