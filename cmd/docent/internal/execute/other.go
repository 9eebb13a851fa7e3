//go:build !linux

package execute

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// Internal runs a hidden command, if args are one. There are none on this platform.
func Internal([]string) (code int, ok bool) { return 0, false }

func execute(*cobra.Command, *cli.App, *options, []string) (int, error) {
	return codeFailed, errors.New("exec runs on Linux only")
}

func writeInBackground() {}
