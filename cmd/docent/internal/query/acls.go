package query

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/zkpath"
)

// checkACLs reads the ACL of each lock's directory, at --rate, and reports those in which every client
// may delete contenders.
func (d *doctor) checkACLs(ctx context.Context, c *framework.Client, s inspect.Snapshot) ([]inspect.Finding, error) {
	var open []string
	rate := pace.Pace{Rate: d.scan.rate}
	for _, l := range s.Locks {
		if err := rate.Wait(ctx, 1); err != nil {
			return nil, err
		}
		dir := l.Path
		if l.Kind == inspect.Exclusive {
			dir, _ = zkpath.Split(l.Path)
		}
		entries, _, err := c.ACL(ctx, dir)
		switch {
		case errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrNoAuth):
		case err != nil:
			return nil, err
		case slices.ContainsFunc(entries, isOpen):
			open = append(open, l.Path)
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	severity := inspect.Info
	if d.app.Settings().AuthFile != "" || slices.ContainsFunc(cli.AuthVariables(), func(v string) bool { return d.app.Getenv(v) != "" }) {
		severity = inspect.Warning // credentials are in use
	}
	return []inspect.Finding{inspect.NewFinding(severity, "open-acl", open[0],
		fmt.Sprintf("every client may delete the contenders of %s of %d, such as this", show.Counted(len(open), "lock"), len(s.Locks)),
		"If not all clients are trusted, give the directories an ACL: see docs/security.md.")}, nil
}

// isOpen reports whether the entry lets every client delete children.
func isOpen(e acl.Entry) bool { return e.Scheme == "world" && e.Perms&acl.Delete != 0 }
