// Package demo shows docent at work: a ZooKeeper server within the process, workers that contend for
// locks, a revocation, a loss, a deadlock, and the page.
package demo

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// New returns the command "demo".
func New(app *cli.App) *cobra.Command {
	opts := page.Options{AllowRevoke: true}
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: cli.ToShow,
		Short:   "Show docent at work, on a ZooKeeper within the process",
		Long: "demo starts a ZooKeeper server within the process, and workers that contend for locks there. One is\n" +
			"asked to release, one loses its lease, and two run into a deadlock. The page shows it. demo takes no\n" +
			"--connect, so it never meets a real ensemble. It ends at Ctrl-C.",
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if app.Given("connect") {
				return cli.Usage(errors.New("demo takes no --connect: it starts its own server"))
			}
			if err := opts.CheckLoopback(); err != nil {
				return cli.Usage(err)
			}
			server, err := zkserver.Start()
			if err != nil {
				return err
			}
			c, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
			if err != nil {
				return errors.Join(err, server.Close())
			}
			s := newStage(cmd.Context(), server, func(format string, args ...any) {
				fmt.Fprintf(app.Err, format+"\n", args...)
			})
			err = page.Run(cmd.Context(), app, c, root, opts)
			s.close()
			return errors.Join(err, c.Close(), server.Close())
		},
	}
	opts.Define(cmd.Flags().StringVar)
	return cmd
}
