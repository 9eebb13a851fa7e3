package rendezvous

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// readyName is the znode that exists from the entry of the last member until all have left.
const readyName = "ready"

// A directory is a listing of the barrier's directory. Its version tells one ready from the next: each
// member that creates ready writes to the directory in the same transaction. So a deletion that checks
// the version can't meet a ready that docent created after the listing. The data stays as it is.
type directory struct {
	names   []string
	version int32
}

// unknownVersion is that of a listing without a Stat.
const unknownVersion = framework.AnyVersion

// ready returns the path of the znode that lets members in.
func (g *Gate) ready() string { return framework.JoinPath(g.Path, readyName) }

// look lists the barrier's directory.
func (g *Gate) look(ctx context.Context, c *framework.Client) (directory, error) {
	names, st, err := c.Children(ctx, g.Path)
	return directory{names, st.Version}, err
}

// open makes sure that there is a ready that was created after the member's znode.
func (g *Gate) open(ctx context.Context, member *waitqueue.Grant, listed directory) error {
	c, expected := member.Client, slices.Contains(listed.names, readyName)
	for ; ; expected = true {
		mark, err := g.mark(ctx, c)
		if errors.Is(err, framework.ErrNoNode) {
			return errGone
		}
		if err != nil {
			return err
		}
		exists := false
		if expected {
			var st framework.Stat
			if st, exists, err = c.Exists(ctx, g.ready()); err != nil || exists && st.Czxid > member.Stat.Czxid {
				return err
			}
		}
		var ops []framework.TxnOp
		if exists {
			ops = append(ops, framework.OpDelete(g.ready(), framework.AnyVersion))
		}
		ops = append(ops, framework.OpCreate(g.ready(), contender.LocalAddress(), g.ACL...))
		_, err = c.Txn(ctx, append(ops, mark)...)
		if errors.Is(err, framework.ErrNoAuth) { // maybe the directory is not the client's to write
			_, err = c.Txn(ctx, ops...)
		}
		if !changed(err) {
			return err
		}
	}
}

// mark returns the operation that gives the directory another version.
func (g *Gate) mark(ctx context.Context, c *framework.Client) (framework.TxnOp, error) {
	data, st, err := c.Get(ctx, g.Path)
	if errors.Is(err, framework.ErrNotGzip) || errors.Is(err, framework.ErrTooLarge) { // data of another program
		return framework.OpCheck(g.Path, framework.AnyVersion), nil
	}
	return framework.OpSet(g.Path, data, st.Version), err
}

// removeReady deletes the ready that was there when the directory was listed. If the directory has
// changed since, removeReady does nothing.
func (g *Gate) removeReady(ctx context.Context, c *framework.Client, listed directory) error {
	if listed.version == unknownVersion || !slices.Contains(listed.names, readyName) {
		return nil
	}
	_, err := c.Txn(ctx, framework.OpCheck(g.Path, listed.version), framework.OpDelete(g.ready(), framework.AnyVersion))
	if changed(err) {
		return nil
	}
	return err
}

// changed reports whether a transaction failed because another client has changed ready or the
// directory.
func changed(err error) bool {
	return errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrNoNode)
}

// membersOf returns the names of the members' znodes, in order.
func membersOf(names []string) []string {
	members := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == readyName })
	slices.Sort(members)
	return members
}
