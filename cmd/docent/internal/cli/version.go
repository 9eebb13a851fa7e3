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
		Use: "version", Short: "Print the versions of the command, the library and Go", Args: Args(0, 0),
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
