package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A revoke is one run of revoke.
type revoke struct {
	app        *cli.App
	allHolders bool
	yes        bool
	context    string
}

// newRevoke returns the command revoke.
func newRevoke(app *cli.App) *cobra.Command {
	r := &revoke{app: app}
	cmd := &cobra.Command{
		Use:     "revoke PATH | ZNODE",
		Short:   "Ask a holder to release its lock",
		GroupID: cli.ToEnd,
		Long: "revoke asks the holder of the lock at PATH, or the contender at ZNODE, to release. The request\n" +
			"replaces the znode's data, so host, pid and owner are gone after it. Only locks with revocation are\n" +
			"notified, and they may ignore the request. On a terminal, revoke asks first; elsewhere it needs --yes.",
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if framework.ValidatePath(args[0]) == nil && !r.yes && !cli.Terminal(app.In) {
				return cli.Usage(errors.New("without a terminal --yes is needed"))
			}
			return onClient(app, r.run)(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&r.allHolders, "all-holders", false, "ask all holders of a lock that has several")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	cmd.Flags().StringVar(&r.context, "confirm-context", "", "the `name` of the context, if it is protected")
	return cmd
}

func (r *revoke) run(ctx context.Context, c *framework.Client, path string) error {
	read, cancel := context.WithTimeout(ctx, r.app.Settings().Timeout)
	defer cancel()
	targets, err := r.targets(read, c, path)
	if err != nil {
		return err
	}
	if err := allowContext(ctx, r.app, r.context); err != nil { // the user has time
		return err
	}
	if err := r.confirm(ctx, targets); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, r.app.Settings().Timeout)
	defer cancel()
	for _, t := range targets {
		fmt.Fprintf(r.app.Out, "asking %s%s, %s\n", show.Who(t), show.AlsoSession(t), cli.Safe(t.Znode))
		if err := lock.Revoke(ctx, c, t.Znode); err != nil {
			return err
		}
	}
	return nil
}

// confirm says what the request costs, and asks on a terminal: the metadata don't say whether a lock has
// revocation.
func (r *revoke) confirm(ctx context.Context, targets []inspect.Contender) error {
	r.app.Say("the request replaces the metadata (host, pid, owner); only locks with revocation are notified")
	if r.yes {
		return nil
	}
	for _, t := range targets {
		fmt.Fprintf(r.app.Err, "%s%s, %s\n", show.Who(t), show.AlsoSession(t), cli.Safe(t.Znode))
	}
	typed, err := ask(ctx, r.app, "Ask to release? (y/n)")
	if err == nil && typed != "y" {
		err = errRefused
	}
	return err
}

// targets returns the contenders to ask.
func (r *revoke) targets(ctx context.Context, c *framework.Client, path string) ([]inspect.Contender, error) {
	l, err := inspect.Read(ctx, c, path)
	if err != nil {
		return nil, err
	}
	if l.Kind == "" {
		_, one, err := findContender(ctx, c, path)
		return []inspect.Contender{one}, err
	}
	all := l.Holders()
	switch {
	case l.Kind.Unfair():
		return nil, errors.New("an unfair mutex has no revocation: see docent break")
	case len(all) == 0:
		fmt.Fprintln(r.app.Out, "nobody")
		return nil, errNothing
	case len(all) > 1 && !r.allHolders:
		return nil, cli.Usage(fmt.Errorf("%d contenders hold the lock: name one by its znode, or use --all-holders", len(all)))
	}
	return all, nil
}
