// Package args checks the arguments and options of the exported functions of recipes, and names the
// function and the path in their errors. Options that several recipes take are here.
package args

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/zkpath"
)

// A Recipe is the name of a package, which begins the text of its errors.
type Recipe string

// Error wraps err once, at an exported function; nil stays nil. path is one of the view c, and the text
// has the path in the ensemble. c is nil if there is no client, and for a path in the ensemble.
func (r Recipe) Error(c *framework.Client, op, path string, err error) error {
	if err == nil {
		return nil
	}
	if c != nil && strings.HasPrefix(path, "/") {
		path = c.AbsolutePath(path)
	}
	return fmt.Errorf("%s: %s %s: %w", string(r), op, errtype.Path(path), err)
}

// CallError is Error for an exported function that was called with ctx: it joins the cause of ctx's
// end.
func (r Recipe) CallError(ctx context.Context, c *framework.Client, op, path string, err error) error {
	return r.Error(c, op, path, cause.Join(ctx, err))
}

// Ended returns the error of ctx, which has ended, and why the client has no connection if it has none:
// the server's address is part of that. A call that waits for more than one request returns the error.
func Ended(ctx context.Context, c *framework.Client) error {
	state := c.State()
	if state == framework.Connected {
		return ctx.Err()
	}
	var why *framework.OpError
	if err := c.AwaitConnected(ctx); errors.As(err, &why) && errors.Is(err, framework.ErrNotConnected) {
		return why.Err
	}
	return fmt.Errorf("%w: %w (%v)", ctx.Err(), framework.ErrNotConnected, state)
}

// Client returns the fault of a client that is nil.
func Client(c *framework.Client) error {
	if c == nil {
		return errors.New("client: must not be nil")
	}
	return nil
}

// Function returns the fault of a function that is nil; name is the argument's.
func Function(name string, given bool) error {
	if !given {
		return fmt.Errorf("%s: must not be nil", name)
	}
	return nil
}

// Codec returns the fault of a codec that lacks a function.
func Codec(encode, decode bool) error {
	if !encode || !decode {
		return errors.New("codec: must have Encode and Decode")
	}
	return nil
}

// Element returns the fault of a name that can't be an element of a path; what says whose name it is. All
// names that become a znode's are checked here, when a recipe gets them.
func Element(what, name string) error {
	if name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%s %q: must not be empty or contain a slash", what, errtype.Shortened(name))
	}
	if zkpath.IsEpoch(name) {
		return fmt.Errorf("%s %q: is the epoch of a lock", what, errtype.Shortened(name))
	}
	if err := framework.ValidatePath("/" + name); err != nil {
		return fmt.Errorf("%s %q: %w", what, errtype.Shortened(name), err)
	}
	return nil
}

// Target returns the faults of the client and the path that a constructor gets.
func Target(c *framework.Client, path string) (faults []error) {
	if err := Client(c); err != nil {
		faults = append(faults, err)
	}
	if err := framework.ValidatePath(path); err != nil {
		faults = append(faults, err)
	} else if path == "/" {
		faults = append(faults, errors.New("path: must not be the root"))
	} else if zkpath.IsEpoch(path) || c != nil && zkpath.IsEpoch(c.AbsolutePath(path)) {
		faults = append(faults, fmt.Errorf("path %q: is the epoch of another lock, or below it", path))
	}
	return faults
}

// Unreadable reports whether err, of the read of a znode, will come again until the znode is another, or its
// ACL. Recipes that read many znodes return what they know of the others, and name this one.
func Unreadable(err error) bool {
	return errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) || errors.Is(err, framework.ErrNotGzip)
}
