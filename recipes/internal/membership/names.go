package membership

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/zkpath"
)

// Names gives random names to the znodes that the calls of one client create in one directory. So a
// znode of such a name is the client's own. A create waits until every znode that earlier calls have
// left behind is gone. If the outcome of a create of a former session is unknown, the next znode gets its
// name: then that create can't be applied any more, or its znode is found and deleted. If there are several
// such names, the create waits until the ensemble has ended the sessions of the others. Therefore one call
// is never seen as two znodes. The methods may be called concurrently.
type Names struct {
	dir  string        // in the ensemble
	turn chan struct{} // capacity 1: full while a call creates a znode, or ends a former one

	all   *allNames
	calls int              // under way; guarded by all.mu, as the following
	names map[string]*name // that are not known to be gone for good
}

// A name is that of a znode that has been left behind, or may be.
type name struct {
	session int64           // that has the znode; 0 for none
	unknown []unknownCreate // one of each session; never changed in place
	over    chan struct{}   // closed when the znode's deletion in its own session is over; nil if none began
}

// An unknownCreate is a create whose outcome is unknown.
type unknownCreate struct {
	session int64
	over    <-chan struct{} // closed when the client's search for the znode is over; nil for none
}

// without returns the creates of other sessions.
func without(creates []unknownCreate, session int64) []unknownCreate {
	return slices.DeleteFunc(slices.Clone(creates), func(c unknownCreate) bool { return c.session == session })
}

// allNames has the Names of a client.
type allNames struct {
	mu    sync.Mutex // held for no request
	byDir map[string]*Names
}

// NamesOf returns the Names of the client for the directory. done has to be called after their use.
func NamesOf(c *framework.Client, dir string) (n *Names, done func()) {
	all := framework.Shared(c, func() *allNames { return &allNames{byDir: make(map[string]*Names)} })
	dir = c.AbsolutePath(dir)
	all.mu.Lock()
	defer all.mu.Unlock()
	if n = all.byDir[dir]; n == nil {
		n = &Names{dir: dir, turn: make(chan struct{}, 1), all: all, names: make(map[string]*name)}
		all.byDir[dir] = n
	}
	n.calls++
	return n, func() { n.change(func() { n.calls-- }) }
}

// change calls do with the lock held. Names that know of nothing are forgotten.
func (n *Names) change(do func()) {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	do()
	if n.calls == 0 && len(n.names) == 0 {
		delete(n.all.byDir, n.dir)
	}
}

// Create calls send, which creates a znode of the name by one call, with exactly the options that it gets, in the
// session that c is bound to. To the caller's options Create adds that the znode is ephemeral and known by its session.
// It waits until the znodes that earlier calls have left behind are gone, or ctx ends. If it fails, no
// znode of the call is counted later.
func (n *Names) Create(
	ctx context.Context, c *framework.Client, session int64, send func(name string, opts []framework.CreateOption) error,
	opts ...framework.CreateOption,
) (err error) {
	if err := n.takeTurn(ctx); err != nil {
		return err
	}
	defer n.endTurn()
	given, err := n.nextName(ctx, c, session)
	if err != nil {
		return err
	}
	var over chan struct{}
	opts = append(slices.Clip(opts), framework.Ephemeral(), framework.KnownBySession())
	for rounds := pace.Rounds(); ; {
		ended := make(chan struct{})
		over = ended
		err = send(given, append(slices.Clip(opts), framework.WhenOver(func(bool) { close(ended) })))
		if !errors.Is(err, framework.ErrNodeExists) {
			break
		}
		err = n.delete(ctx, c, given) // of a former session's create, which was applied late
		if errors.Is(err, ErrTaken) {
			if err = n.awaitSessions(ctx, c, given, n.state(given).unknown); err == nil {
				n.change(func() { n.dropLocked(given) })
				given = n.draw()
			}
		}
		if err != nil {
			break
		}
		if err = rounds.Wait(ctx, 1); err != nil {
			break
		}
	}
	unknown := errors.Is(err, framework.ErrUnknownOutcome)
	n.change(func() { n.created(given, unknownCreate{session, over}, err == nil, unknown) })
	return err
}

// created records how a create has ended. It needs the lock.
func (n *Names) created(given string, c unknownCreate, done, unknown bool) {
	one := n.names[given]
	one.over, one.unknown = nil, without(one.unknown, c.session)
	switch {
	case done:
		one.session = c.session
	case unknown:
		one.unknown = append(one.unknown, c)
	}
	n.dropLocked(given)
}

// dropLocked forgets the name unless there is, or may be, a znode. It needs the lock.
func (n *Names) dropLocked(znode string) {
	if one := n.names[znode]; one != nil && one.session == 0 && len(one.unknown) == 0 {
		delete(n.names, znode)
	}
}

// Delete returns the options for the deletion of the session's znode of the name. The znode must not be
// deleted otherwise.
func (n *Names) Delete(znode string, session int64) []framework.DeleteOption {
	over := make(chan struct{})
	n.change(func() {
		if one := n.names[znode]; one != nil && one.session == session {
			one.over = over
		}
	})
	return []framework.DeleteOption{framework.Guaranteed(), framework.WhenOver(func(gone bool) {
		if gone {
			n.gone(znode, session)
		}
		close(over)
	})}
}

// AwaitGone returns when the znode of the name is gone, whose deletion has begun. If that deletion ended
// with its session, AwaitGone deletes the znode, because the ensemble may have that session for a while
// longer. c must not be bound to it.
func (n *Names) AwaitGone(ctx context.Context, c *framework.Client, znode string) error {
	if err := n.await(ctx, znode); err != nil {
		return err
	}
	if err := n.takeTurn(ctx); err != nil { // else a create could reuse the name before the deletion
		return err
	}
	defer n.endTurn()
	one := n.state(znode)
	if one.session == 0 || one.over == nil {
		return nil // it is gone, and the name may be in use again
	}
	return n.deleteFormer(ctx, c, znode, 0) // it is of another session than c's
}

// gone records that the znode of the session is gone.
func (n *Names) gone(znode string, session int64) {
	n.change(func() {
		if one := n.names[znode]; one != nil && one.session == session {
			one.session = 0
		}
		n.dropLocked(znode)
	})
}

// nextName returns when all znodes that were left behind are gone, and the name for the next one.
func (n *Names) nextName(ctx context.Context, c *framework.Client, present int64) (next string, err error) {
	var known []string
	n.change(func() { known = slices.Sorted(maps.Keys(n.names)) })
	for _, znode := range known {
		if err := n.await(ctx, znode); err != nil {
			return "", err
		}
		one := n.state(znode)
		switch {
		case one.session == 0 && len(one.unknown) == 0:
			continue // it is gone
		case one.session == present && one.over == nil:
			continue // it is in use, and while it exists a create of unknown outcome is not applied
		}
		if err := n.deleteFormer(ctx, c, znode, present); err != nil {
			return "", err
		}
		switch unknown := n.state(znode).unknown; {
		case len(unknown) == 0:
		case next == "":
			next = znode
		default:
			if err := n.awaitSessions(ctx, c, znode, unknown); err != nil {
				return "", err
			}
		}
	}
	if next == "" {
		next = n.draw()
	}
	return next, nil
}

// draw returns a new name.
func (n *Names) draw() string {
	drawn := rand.Text()
	n.change(func() { n.names[drawn] = new(name) })
	return drawn
}

// deleteFormer deletes a znode of the name. Then an earlier create of the present session is over, because the
// ensemble serves the requests of a session in order.
func (n *Names) deleteFormer(ctx context.Context, c *framework.Client, znode string, present int64) error {
	one := n.state(znode)
	for _, d := range one.unknown {
		if d.session != present {
			continue
		}
		if err := awaitOver(ctx, d.over); err != nil { // else the create might be sent after the deletion
			return err
		}
	}
	if err := unless(n.delete(ctx, c, znode), ErrTaken); err != nil {
		return err
	}
	n.change(func() { n.forgetLocked(znode, present) })
	n.gone(znode, one.session)
	return nil
}

// awaitSessions waits until the creates of unknown outcome can't be applied any more.
func (n *Names) awaitSessions(ctx context.Context, c *framework.Client, znode string, creates []unknownCreate) error {
	for _, d := range creates {
		if err := c.AwaitSessionEnd(ctx, d.session); err != nil {
			return err
		}
		n.change(func() { n.forgetLocked(znode, d.session) })
	}
	return nil
}

// forgetLocked records that the create of the session is over. It needs the lock.
func (n *Names) forgetLocked(znode string, session int64) {
	if one := n.names[znode]; one != nil {
		one.unknown = without(one.unknown, session)
	}
	n.dropLocked(znode)
}

// await waits until the deletion of a znode of the name is over, if one has begun.
func (n *Names) await(ctx context.Context, znode string) error {
	return awaitOver(ctx, n.state(znode).over)
}

// awaitOver waits until over is closed, unless it is nil.
func awaitOver(ctx context.Context, over <-chan struct{}) error {
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeTurn waits until no other call creates a znode, or ends one of a former session.
func (n *Names) takeTurn(ctx context.Context) error {
	select {
	case n.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *Names) endTurn() { <-n.turn }

// state returns what is known of the name.
func (n *Names) state(znode string) (one name) {
	n.change(func() {
		if known := n.names[znode]; known != nil {
			one = *known
		}
	})
	return one
}

// delete deletes the znode of the name, if it is the client's own: of one of the sessions in which it may have
// made it. Otherwise it returns ErrTaken.
func (n *Names) delete(ctx context.Context, c *framework.Client, znode string) error {
	c, path, one := c.Root(), zkpath.Join(n.dir, znode), n.state(znode)
	st, exists, err := ExistsBehind(ctx, c, path)
	switch {
	case err != nil || !exists:
		return err
	case st.EphemeralOwner == 0 || st.EphemeralOwner != one.session && len(without(one.unknown, st.EphemeralOwner)) == len(one.unknown):
		return ErrTaken
	}
	return c.Delete(ctx, path, framework.CreatedBy(st.Czxid), framework.Idempotent())
}
