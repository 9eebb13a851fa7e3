// Package version tells which version of this module a program was built with.
package version

import (
	"runtime/debug"
	"sync"
)

const module = "github.com/docent-go/docent"

// Unknown is the version where the build does not say it.
const Unknown = "(devel)"

// Module returns the module's version, as in "v1.2.3", or [Unknown]: it is the
// version of the instrumentation.
func Module() string { return once() }

var once = sync.OnceValue(read) //nolint:gochecknoglobals // a program is built once

func read() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Unknown
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version != "" {
			return m.Version
		}
	}
	return Unknown
}
