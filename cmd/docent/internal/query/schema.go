package query

import (
	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/form"
)

// newSchema returns the command schema.
func newSchema(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of what docent writes with -o json and -o jsonl",
		Args:  cli.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := app.Out.Write(form.Schema)
			return err
		},
	}
}
