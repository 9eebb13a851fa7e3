package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// New returns the command "serve".
func New(app *cli.App) *cobra.Command {
	var opts Options
	cmd := &cobra.Command{
		Use:     "serve [ROOT]",
		GroupID: cli.ToShow,
		Short:   "Serve a live page of the locks",
		Long: "serve shows the locks below ROOT on one page: holders, waiters, the wait-for graph and the holds of\n" +
			"the last ten minutes. It prints the page's URL, which has a token. It lists all znodes below ROOT, so\n" +
			"choose a directory that has only locks.",
		Args: cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cli.Root(args)
			if err := framework.ValidatePath(root); err != nil {
				return cli.Usage(err)
			}
			if err := errors.Join(opts.check(), opts.Follow.Check()); err != nil {
				return cli.Usage(err)
			}
			c, err := app.Client()
			if err != nil {
				return err
			}
			return errors.Join(Run(cmd.Context(), app, c, root, opts), c.Close())
		},
	}
	opts.Define(cmd.Flags().StringVar)
	set := cmd.Flags()
	opts.Follow.Define(set)
	set.StringVar(&opts.Cert, "tls-cert", "", "certificate of the page, a `file` in PEM form")
	set.StringVar(&opts.Key, "tls-key", "", "key of the certificate, a `file`")
	set.StringVar(&opts.TokenFile, "token-file", "", "a `file` with the token; without it each start has a new token")
	set.StringArrayVar(&opts.AllowHosts, "allow-host", nil, "a further `host` and port by which the page may be asked for")
	set.BoolVar(&opts.AllowRevoke, "allow-revoke", false, "let the page ask holders to release")
	return cmd
}

// Define defines the flag that "demo" has, too.
func (o *Options) Define(stringVar func(p *string, name, value, usage string)) {
	stringVar(&o.Listen, "listen", "127.0.0.1:7181", "`address` of the page")
}

// Run follows the locks below root and serves their page, until ctx ends. It prints the page's URL to
// standard output. That ctx ends is no error.
func Run(ctx context.Context, app *cli.App, c *framework.Client, root string, opts Options) (err error) {
	live, err := inspect.Follow(c, root, opts.Follow.Limits())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close()) }()
	return opts.serve(ctx, app, Config{
		Source: live, Servers: strings.Join(c.Servers(), ","), Root: root,
		Log:    slog.New(slog.NewTextHandler(app.Err, nil)),
		Revoke: func(ctx context.Context, znode string) error { return lock.Revoke(ctx, c, znode) },
	})
}

func (o Options) serve(ctx context.Context, app *cli.App, cfg Config) error {
	token, err := o.token()
	if err != nil {
		return cli.Usage(err)
	}
	l, hosts, err := o.listen(ctx)
	if err != nil {
		return err
	}
	cfg.Token, cfg.Hosts = token, hosts
	if !o.AllowRevoke {
		cfg.Revoke = nil
	}
	if err := o.announce(app, l, token); err != nil {
		return errors.Join(err, l.Close())
	}
	return NewServer(cfg).Serve(ctx, l)
}

// announce prints the page's URL. It does not print an operator's own token, because standard output may
// go to a log.
func (o Options) announce(app *cli.App, l net.Listener, token string) error {
	if o.TokenFile == "" {
		_, err := fmt.Fprintf(app.Out, "%s/#token=%s\n", o.base(l), token)
		return err
	}
	_, err := fmt.Fprintf(app.Out, "%s/\n", o.base(l))
	fmt.Fprintf(app.Err, "docent: the page needs #token= and the token of %s after its URL. It listens at %s\n", o.TokenFile, l.Addr())
	return err
}
