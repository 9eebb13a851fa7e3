// Command docent shows the locks of a ZooKeeper ensemble, and runs commands under them.
// docs/command.md describes it.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/demo"
	"github.com/docent-go/docent/cmd/docent/internal/execute"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/cmd/docent/internal/query"
	"github.com/docent-go/docent/cmd/docent/internal/watch"
)

// commands are the constructors of all commands.
func commands() []func(*cli.App) *cobra.Command {
	return append([]func(*cli.App) *cobra.Command{execute.New, execute.NewHold, watch.New, page.New, demo.New}, query.Commands()...)
}

func main() {
	if code, ok := execute.Internal(os.Args[1:]); ok {
		os.Exit(code)
	}
	app := &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
	os.Exit(app.Main(context.Background(), os.Args[1:], commands()...))
}
