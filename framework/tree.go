package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
)

// readTogether is how many znodes of a tree one step of GetTree reads and lists.
const readTogether = 128

// GetTree reads the znode at path and all below it, and returns them by their paths. It is not the tree at one
// instant: what is created or deleted meanwhile may be in it or not; a recipe's cache can be that. GetTree takes
// two round trips for each 128 znodes of one depth, and has the whole tree in memory. What the client can't read
// hides nothing else: the error joins the reason for each such znode, as [Client.GetEach] returns it, and comes with
// all the others; below one that can't be listed nothing is read. [ErrNoNode] means that there is no znode at path.
// After an outage or the end of ctx the error says so, and the tree is incomplete.
func (c *Client) GetTree(ctx context.Context, path string) (map[string]Read, error) {
	usercall.Require("ctx", ctx != nil)
	tree := make(map[string]Read)
	var faults []error
	for level := []string{path}; len(level) > 0; {
		var below []string
		for some := range slices.Chunk(level, readTogether) {
			children, unread, err := c.readLevel(ctx, tree, some)
			if faults = append(faults, unread...); err != nil {
				return tree, errors.Join(append(faults, err)...)
			}
			below = append(below, children...)
		}
		if level[0] == path && len(tree) == 0 && len(faults) == 0 {
			return nil, c.opError("get tree", path, ErrNoNode)
		}
		level = below
	}
	return tree, errors.Join(faults...)
}

// readLevel reads the znodes into tree, and returns the paths of their children and why it can't read some. Znodes
// that are gone are left out. The last error is one that concerns all.
func (c *Client) readLevel(ctx context.Context, tree map[string]Read, paths []string) (children []string, unread []error, err error) {
	reads, faults := c.GetEach(ctx, paths...)
	var parents []string
	for i, path := range paths {
		switch fault := faults[i]; {
		case fault == nil:
			tree[path] = reads[i]
			if reads[i].Stat.NumChildren > 0 {
				parents = append(parents, path)
			}
		case errors.Is(fault, ErrTooLarge), errors.Is(fault, ErrNotGzip): // of the data
			parents, unread = append(parents, path), append(unread, fault)
		case errors.Is(fault, ErrNoAuth):
			unread = append(unread, fault)
		case !errors.Is(fault, ErrNoNode):
			return nil, unread, fault
		}
	}
	if len(parents) == 0 {
		return nil, unread, nil
	}
	names, _, faults := c.ChildrenEach(ctx, parents...)
	for i, parent := range parents {
		switch fault := faults[i]; {
		case errors.Is(fault, ErrTooLarge), errors.Is(fault, ErrNoAuth):
			unread = append(unread, fault)
		case fault != nil && !errors.Is(fault, ErrNoNode):
			return nil, unread, fault
		}
		for _, name := range names[i] {
			children = append(children, zkpath.Join(parent, name))
		}
	}
	return children, unread, nil
}

// PruneParents deletes the parents of path that are empty, from below, and stops at root, which stays. So the
// directory of a lock goes with its last contender, if it is no container: those the server removes itself. It
// leaves a parent that has children and one that is ephemeral, with all above, and that is no error. A client that
// creates below a parent at the same time may find it missing: see [WithParents]. root must be above path.
func (c *Client) PruneParents(ctx context.Context, path, root string) error {
	usercall.Require("ctx", ctx != nil)
	err := errors.Join(ValidatePath(path), ValidatePath(root))
	if err == nil && !strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/") {
		err = fmt.Errorf("root %s: must be above the path", errtype.Path(root))
	}
	if err != nil {
		return c.opError("prune parents of", path, err)
	}
	for dir, _ := zkpath.Split(path); dir != root; dir, _ = zkpath.Split(dir) {
		st, exists, err := c.Exists(ctx, dir)
		switch {
		case err != nil:
			return err
		case !exists: // it is gone already
			continue
		case st.NumChildren > 0 || proto.IsSession(st.EphemeralOwner):
			return nil
		}
		err = c.Delete(ctx, dir, CreatedBy(st.Czxid))
		switch {
		case errors.Is(err, ErrNotEmpty):
			return nil
		case err != nil && !errors.Is(err, ErrNoNode):
			return err
		}
	}
	return nil
}
