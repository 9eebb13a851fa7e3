// Package group shows which processes take part in something: each member is one ephemeral znode below
// a path, named by the member's id, as of Curator's GroupMember. Begin with [New] and [Group.Join]. A [Group] is a
// cache of these znodes and, for those that join, a kept znode: see packages cache and node.
//
// A Group is behind the ensemble by a moment, and by more while the client has no connection: see
// [Group.Stale]. Therefore it does not exclude: two members may see two groups at one time. Work that
// one process at a time may do needs a lock.
//
// Stability: stable.
package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/membership"
	"github.com/docent-go/docent/recipes/node"
)

// recipe begins the text of errors.
const recipe args.Recipe = "group"

// An Option configures a [Group]. It is one of package recipes: WithACL, WithName or WithSettle. [New]
// reports all faulty options at once.
type Option interface{ args.GroupOption }

// A Group is the members below a path. Its methods may be called concurrently.
type Group struct {
	client *framework.Client
	path   string
	cfg    args.Options
	cache  *cache.Cache
	joined membership.Set // of Nodes, by their ids
}

// New returns the group at path, which need not exist, and begins to read it: see [Group.Ready]. It
// creates nothing. The group has to be closed. If an argument is faulty, New returns all faults.
func New(c *framework.Client, path string, opts ...Option) (*Group, error) {
	var cfg args.Options
	faults := append(args.Configure(&cfg, opts, Option.ForGroup), args.Client(c), framework.ValidatePath(path))
	if err := errors.Join(faults...); err != nil {
		return nil, recipe.Error(c, "new", path, err)
	}
	members, err := cache.New(c, path, cache.WithDepth(1), &cfg)
	if err != nil {
		return nil, recipe.Error(c, "new", path, err)
	}
	return &Group{client: c, path: path, cfg: cfg, cache: members}, nil
}

// Join begins to create the member with the id, and returns the Node that keeps its znode:
// [node.Node.Await] returns once the member has joined, or [node.ErrTaken] if another process has
// the id. [node.Node.Close] leaves the group. An id must not be empty or contain a slash. It must
// not be the id of a present member of this Group. After Close, Join returns [framework.ErrClosed].
func (g *Group) Join(id string, data []byte) (*node.Node, error) {
	n, err := g.join(id, data)
	return n, recipe.Error(g.client, "join", g.path, err)
}

func (g *Group) join(id string, data []byte) (*node.Node, error) {
	if err := args.Element("id", id); err != nil {
		return nil, err
	}
	n, err := membership.Open(&g.joined, id, func() (*node.Node, error) {
		return node.New(g.client, zkpath.Join(g.path, id), data, &g.cfg)
	})
	if errors.Is(err, membership.ErrOpen) {
		err = fmt.Errorf("id %q: this Group has joined with it and has not left", id)
	}
	return n, err
}

// Ready waits until the group has been read, or ctx ends: then the error wraps ctx's. It is otherwise
// as [cache.Cache.Ready].
func (g *Group) Ready(ctx context.Context) error {
	return recipe.CallError(ctx, g.client, "ready", g.path, g.cache.Ready(ctx))
}

// Stale returns since when the group may be behind, and whether it may: see [cache.Cache.Stale].
func (g *Group) Stale() (since time.Time, stale bool) { return g.cache.Stale() }

// Filled reports whether the group has been read: see [cache.Cache.Filled]. Until then no member means nothing.
func (g *Group) Filled() bool { return g.cache.Filled() }

// Members returns the ids of the members, in their order, and their data, as the tree has them: a member
// of this process is among them once its znode exists. Of one that the client can't read, the data is nil:
// [Group.Changes] says why. Before [Group.Ready] it returns what is known.
// The data is shared and must not be changed.
func (g *Group) Members() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, m := range g.membersOf(g.cache.Snapshot()) {
			if !yield(m.ID, m.Data) {
				return
			}
		}
	}
}

// Changes returns the members in the order of their ids: at once when the group is ready, and again
// after each change, the latest alone (see recipes.WithSettle). During an outage there are no changes. While
// the client may not read the group, the error says so, once for each reason and with the last members;
// the next element without an error follows when the group can be read again. The sequence ends with
// ctx, when the Group or its client is closed, or when the loop over it is left.
func (g *Group) Changes(ctx context.Context) iter.Seq2[[]Member, error] {
	return membership.Changes(ctx, g.cache.Snapshots, g.membersOf, same, g.cfg.Settle)
}

// Close leaves the group with all members that have joined, and ends the Group. The znodes are gone, or
// the client deletes them in the background: see [node.Node.Close]. The error joins what went wrong. A
// further Close does nothing.
func (g *Group) Close(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	err := errors.Join(g.joined.Close(ctx), g.cache.Close())
	return recipe.CallError(ctx, g.client, "close", g.path, err)
}

// A Member is one znode of a group. Its data is shared and must not be changed.
type Member struct {
	ID   string
	Data []byte
	Err  error // why the client can't read the data: see [cache.Snapshot.Unread]

	czxid, mzxid int64
}

// membersOf returns the members in the snapshot, in the order of their ids. Those whose data can't be read are
// members, too.
func (g *Group) membersOf(s *cache.Snapshot) []Member {
	var members []Member
	for id, n := range s.Children(g.path) {
		members = append(members, Member{ID: id, Data: n.Data, czxid: n.Stat.Czxid, mzxid: n.Stat.Mzxid})
	}
	for id, err := range membership.In(g.path, s.Unread()) {
		members = append(members, Member{ID: id, Err: err})
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return members
}

// same reports whether nothing has changed from a to b. After a restore of the ensemble one Mzxid may be that of two
// states.
func same(a, b []Member) bool {
	return slices.EqualFunc(a, b, func(a, b Member) bool {
		return a.ID == b.ID && a.czxid == b.czxid && a.mzxid == b.mzxid && bytes.Equal(a.Data, b.Data) && errors.Is(a.Err, b.Err)
	})
}
