package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
)

// opError wraps err once, at an exported function; nil stays nil. path is one of the view c, which may be nil. The
// text has the path in the ensemble.
func opError(c *framework.Client, op, path string, err error) error {
	if err == nil {
		return nil
	}
	if c != nil && framework.ValidatePath(path) == nil {
		path = c.AbsolutePath(path)
	}
	return fmt.Errorf("inspect: %s %s: %w", op, errtype.Path(path), err)
}

// callError is opError for a function that was called with ctx: it joins the cause of ctx's end.
func callError(ctx context.Context, c *framework.Client, op, path string, err error) error {
	return opError(c, op, path, cause.Join(ctx, err))
}

// clientFault returns the fault of a client that is nil.
func clientFault(c *framework.Client) error {
	if c == nil {
		return errors.New("client: must not be nil")
	}
	return nil
}
