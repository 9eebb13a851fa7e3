package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/membership"
)

// recipe begins the text of errors.
const recipe args.Recipe = "node"

// ErrTaken is returned by [Node.Await] and [Node.Set] while a znode that is not the Node's own is at
// the path.
var ErrTaken = membership.ErrTaken

// A Node is a znode that exists as long as the Node is open. Its methods may be called concurrently.
type Node struct {
	*znodeState
	client  *framework.Client
	path    string // as its user gave it
	cfg     config
	ctx     context.Context // ends with the Node, or with the client
	cancel  context.CancelFunc
	keeper  *membership.Keeper // only for its goroutine, and for Close after that
	done    chan struct{}      // closed by that goroutine at its end
	remove  func()             // ends the listener on the client's states
	leave   func()             // frees the path for another Node of the client
	closing atomic.Bool
}

// New returns the Node at path, and begins to create the znode with the data. Missing parents are
// created as containers. The Node has to be closed. If arguments are faulty, New sends nothing and
// returns all faults; one of them is data that is too large ([framework.ErrTooLarge]). While a Node is
// open, New returns an error for another one at its path, of the same client and its views. Only
// [Sequential] Nodes may have one path.
func New(c *framework.Client, path string, data []byte, opts ...Option) (*Node, error) {
	cfg, err := newConfig(c, path, data, opts)
	if err != nil {
		return nil, recipe.Error(c, "new", path, err)
	}
	leave, err := enter(c, path, &cfg)
	if err != nil {
		return nil, recipe.Error(c, "new", path, err)
	}
	n := &Node{
		client: c, path: path, cfg: cfg, done: make(chan struct{}), leave: leave,
		znodeState: newZnodeState(newInstruments(c, cfg.Name, c.AbsolutePath(path)), data),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background()) // the Node's own life
	n.keeper = membership.New(membership.Options{
		Client: c, Path: path, Create: cfg.create, ACL: cfg.WithACL(),
		Sequential: cfg.sequential, Lasting: cfg.lasting(), TTL: cfg.ttl, Adopt: cfg.adoption(),
		Poke: n.poke, Want: n.latest, Attempted: n.attempted,
		Created: n.tel.created, Gone: n.gone, Overwritten: n.overwritten,
	})
	n.remove = c.OnState(n.observe)
	go n.keep() // ends with the Node or the client; Close waits for it
	return n, nil
}

// openPaths are the paths of a client's open Nodes, in the ensemble. Two Nodes of one session at a path
// could not tell their znodes apart if a reply was lost.
type openPaths struct{ sync.Map }

// enter makes the path that of an open Node, until leave is called.
func enter(c *framework.Client, path string, cfg *config) (leave func(), err error) {
	if cfg.sequential {
		return func() {}, nil
	}
	open := framework.Shared(c, func() *openPaths { return new(openPaths) })
	at := c.AbsolutePath(path)
	if _, taken := open.LoadOrStore(at, true); taken {
		return nil, errors.New("path: another Node of this client keeps it, and is not closed")
	}
	return func() { open.Delete(at) }, nil
}

// keep makes the keeper keep the znode.
func (n *Node) keep() {
	defer close(n.done)
	defer n.cancel()
	n.keeper.Run(n.ctx)
}

// Await waits until the znode exists with the latest data, or ctx ends; then the error wraps ctx's,
// and the reason of the latest failure, such as [framework.ErrNotConnected]. Await returns errors that a retry
// can't fix at once: [ErrTaken] if another client's znode is at the path, [framework.ErrNoAuth] if the client may
// not create the znode. The Node goes on trying all the while, and succeeds when the obstacle is gone.
func (n *Node) Await(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	return recipe.CallError(ctx, n.client, "await", n.path, n.wait(ctx, func() (bool, error) {
		if n.problem != nil && n.tried == n.want.Number && n.permanent {
			return true, n.problem
		}
		return n.exists && n.written == n.want.Number, nil
	}))
}

// Set makes data the znode's, now and whenever the znode is created again, and waits until the data is
// written. If that fails, or ctx ends first, Set returns an error, and the Node writes the data when it
// can. If data is too large, Set changes nothing and returns [framework.ErrTooLarge].
func (n *Node) Set(ctx context.Context, data []byte) error {
	usercall.Require("ctx", ctx != nil)
	written, err := n.Replace(data)
	if err != nil {
		return err
	}
	return written(ctx)
}

// Replace makes data the znode's as [Node.Set] does, and returns at once. written waits as Set does,
// and may be left uncalled. Of several calls, the last one's data is the znode's. If data is too large,
// Replace changes nothing and returns [framework.ErrTooLarge].
func (n *Node) Replace(data []byte) (written func(context.Context) error, err error) {
	if err := n.client.CheckCreate(n.path, data, n.cfg.create()...); err != nil {
		return nil, recipe.Error(n.client, "set", n.path, err)
	}
	n.mu.Lock()
	n.want = membership.Content{Data: append([]byte{}, data...), Number: n.want.Number + 1}
	own := n.want.Number
	n.mu.Unlock()
	n.wake()
	return func(ctx context.Context) error {
		return recipe.CallError(ctx, n.client, "set", n.path, n.wait(ctx, func() (bool, error) {
			if n.written >= own {
				return true, nil
			}
			return n.problem != nil && n.tried >= own, n.problem
		}))
	}, nil
}

// Path returns the path of the znode: that of a [Sequential] one has its number, and is another one
// after each creation. It returns "" before the first creation.
func (n *Node) Path() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.znode
}

// Exists reports whether the znode exists, as far as is known: it returns false whenever the client is
// not connected.
func (n *Node) Exists() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exists && n.client.State() == framework.Connected
}

// Closed reports whether the Node, or its client, is closed.
func (n *Node) Closed() bool { return n.ctx.Err() != nil }

// OnChange calls fn with the latest change, if there was one, and then with every change, in order, none
// dropped. fn runs on a goroutine of its own, and may block and call the Node. remove ends the calls and
// waits for one that runs, except when it is called from inside fn. OnChange panics if fn is nil.
func (n *Node) OnChange(fn func(Change)) (remove func()) {
	usercall.Require("fn", fn != nil)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last.Kind == 0 {
		return n.changes.Add(fn)
	}
	return n.changes.AddWith(n.last, fn)
}

// Close ends the Node and deletes the znode, unless that is [Persistent] or has a TTL. Once Close has
// returned nil, the Node has no znode in the client's present session; one of an ended session exists
// until the ensemble has expired that session. After an error, the client deletes the znode in the
// background until it is gone or its session has ended, or the error says that it may exist until then.
// If ctx ends first, the error wraps ctx's. Close waits for the functions of OnChange. A further Close
// returns nil at once.
func (n *Node) Close(ctx context.Context) error {
	if n.closing.Swap(true) {
		return nil
	}
	n.remove()
	n.cancel()
	<-n.done // soon, because it waits for no function of the user's
	err := n.keeper.End(ctx)
	n.leave()
	if late := n.changes.Close(ctx); err == nil {
		err = late
	}
	return recipe.CallError(ctx, n.client, "close", n.path, err)
}

// wait waits until ready, which is called with mu held, returns true.
func (n *Node) wait(ctx context.Context, ready func() (bool, error)) error {
	for {
		n.mu.Lock()
		done, err := ready()
		news := n.news
		n.mu.Unlock()
		if n.ctx.Err() != nil {
			return framework.ErrClosed
		}
		if done {
			return err
		}
		select {
		case <-news:
		case <-n.ctx.Done():
		case <-ctx.Done():
			return n.late(ctx)
		}
	}
}

// late returns the error of a wait whose ctx has ended: with why there is no connection, or else with the
// reason of the latest failure.
func (n *Node) late(ctx context.Context) error {
	ended := args.Ended(ctx, n.client)
	n.mu.Lock()
	reason := n.reason
	n.mu.Unlock()
	if reason != nil && !errors.Is(ended, framework.ErrNotConnected) {
		return fmt.Errorf("%w: %w", ended, reason)
	}
	return ended
}
