// Package boundary has what the exported functions of recipes have in common: the text of their
// errors, and how a constructor checks its arguments and takes its options.
package boundary

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
)

// A Recipe is the name of a package, which begins the text of its errors.
type Recipe string

// Error wraps err once, at an exported function; nil stays nil.
func (r Recipe) Error(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %s: %w", string(r), op, errtype.Path(path), err)
}

// CallError is Error for an exported function that was called with ctx: it joins the cause of ctx's
// end.
func (r Recipe) CallError(ctx context.Context, op, path string, err error) error {
	return r.Error(op, path, cause.Join(ctx, err))
}
