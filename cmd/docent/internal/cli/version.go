package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what "docent version" shows.
type version struct {
	Schema  string `json:"schema"`
	Version string `json:"version"`
	Docent  string `json:"docent"` // of the library
	Go      string `json:"go"`
}

func (a *App) newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of the command, the library and Go", Args: NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := present()
			if a.settings.Output == JSON || a.settings.Output == JSONLines {
				return a.WriteJSON(v)
			}
			_, err := fmt.Fprintf(a.Out, "docent %s (library %s, %s)\n", v.Version, v.Docent, v.Go)
			return err
		},
	}
}

// present returns the versions that the linker noted.
func present() version {
	v := version{Schema: Schema, Version: "(devel)", Docent: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/docent-go/docent" && dep.Replace == nil {
			v.Docent = dep.Version
		}
	}
	return v
}

// NoArgs refuses arguments, as a usage error.
func NoArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return Usage(err)
	}
	return nil
}

// Args returns a check for the number of arguments. A wrong number is a usage error.
func Args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.RangeArgs(least, most)(cmd, args); err != nil {
			return Usage(err)
		}
		return nil
	}
}
