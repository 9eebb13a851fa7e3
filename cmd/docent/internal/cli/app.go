// Package cli is what the commands of docent share: flags, environment and file, the client, the
// output, and exit codes.
//
// Each command is a package with a function New(app *cli.App) *cobra.Command, which main lists. Its
// RunE connects with [App.Connect] and writes with the methods of [App]. It returns an error, or an
// [ExitError] if the exit code has a meaning of its own.
package cli

import (
	"context"
	"io"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/framework"
)

// An App is one run of the program: its streams, environment and flags. Tests give it their own.
type App struct {
	In  io.Reader
	Out io.Writer // data
	Err io.Writer // everything else
	Env []string  // as os.Environ has it

	// Options are further options of the client, after those of the flags. They are for tests.
	Options []framework.Option

	flags    flagValues
	root     *cobra.Command
	settings Settings // see load

	credentials func() ([]credential, error) // those of readCredentials, which the file gives once
}

// SignalsOwn is the annotation of a command that handles signals itself. For others, INT and TERM
// end the command's context.
const SignalsOwn = "docent/signals-own"

// LoadsContexts is the annotation of a command that calls [App.LoadContexts] itself. The file of contexts can be read
// once only if it is a pipe, and some processes of a command need none.
const LoadsContexts = "docent/loads-contexts"

// The groups of commands in docent's help. A command's GroupID is one of them, or empty.
const (
	ToRun  = "run"
	ToShow = "show"
	ToEnd  = "end"
)

// Main runs the command that args name, and returns the exit code of the process.
func (a *App) Main(ctx context.Context, args []string, commands ...func(*App) *cobra.Command) int {
	a.credentials = sync.OnceValues(a.readCredentials)
	var stop context.CancelFunc = func() {}
	defer func() { stop() }()
	a.root = a.newRoot(func(cmd *cobra.Command) {
		if cmd.Annotations[SignalsOwn] != "" {
			return
		}
		var interruptible context.Context
		interruptible, stop = signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		cmd.SetContext(interruptible)
	})
	for _, command := range commands {
		cmd := command(a)
		switch {
		case cmd.ValidArgsFunction != nil:
		case takesPaths(cmd):
			cmd.ValidArgsFunction = a.CompletePath
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		a.root.AddCommand(cmd)
	}
	a.root.SetArgs(args)
	cmd, err := a.root.ExecuteContextC(ctx)
	return a.exit(cmd, err)
}

// newRoot returns the command that all others are below. begin is called before one of them runs.
func (a *App) newRoot(begin func(*cobra.Command)) *cobra.Command {
	root := &cobra.Command{
		Use:   "docent",
		Short: "Show the locks of a ZooKeeper ensemble, and run commands under them",
		Long: "docent shows who holds and who awaits the locks of a ZooKeeper ensemble, those of Curator " +
			"and kazoo\nincluded. It runs commands under a lock.",
		SilenceErrors:    true,
		SilenceUsage:     true,
		TraverseChildren: true, // a flag's value is never taken for the name of a command
		Args:             noSuchCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			begin(cmd)
			load := a.load
			if cmd.Annotations[LoadsContexts] != "" {
				load = a.loadFlags
			}
			if err := load(); err != nil {
				return err
			}
			return a.checkPicture(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2, // letters that differ
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	a.flags.define(root.PersistentFlags())
	Choices(root, "output", formats()...)
	if err := root.RegisterFlagCompletionFunc("context", a.completeContext); err != nil {
		panic(err) // the command has no such flag
	}
	root.AddGroup(&cobra.Group{ID: ToRun, Title: "Run a command under a lock:"},
		&cobra.Group{ID: ToShow, Title: "Show locks:"}, &cobra.Group{ID: ToEnd, Title: "End a hold:"})
	root.AddCommand(a.newVersion())
	root.AddCommand(topics()...)
	fixHelp(root)
	return root
}
