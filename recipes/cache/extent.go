package cache

import (
	"strings"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
)

// An extent is a znode and what lies below it, as far as its limits allow. It is immutable.
type extent struct {
	Root  string
	Depth int               // how far it reaches below Root; negative for no limit
	Keep  func(string) bool // the user's filter; nil accepts every path
	Log   *zap.Logger       // for a panic of Keep
}

// Has reports whether the znode at path, which is at or below Root, belongs to the Extent.
func (e extent) Has(path string) bool {
	for at := e.Root; at != path; {
		rest := strings.TrimPrefix(path, below(at))
		if len(rest) == len(path) || !e.Deepens(at) {
			return false
		}
		name, _, _ := strings.Cut(rest, "/")
		if name == "" {
			return false // not a path, and the walk would not end
		}
		if at = framework.JoinPath(at, name); !e.Accepts(at) {
			return false
		}
	}
	return true
}

// Deepens reports whether the depth allows children of the znode at path.
func (e extent) Deepens(path string) bool { return e.Depth < 0 || e.depthOf(path) < e.Depth }

// depthOf returns how far path is below Root.
func (e extent) depthOf(path string) int {
	if path == e.Root {
		return 0
	}
	return 1 + strings.Count(path[len(below(e.Root)):], "/")
}

// Accepts reports whether the filter accepts path. If the filter panics or ends its
// goroutine, it does not.
func (e extent) Accepts(path string) bool {
	if e.Keep == nil {
		return true
	}
	keep := false
	usercall.GuardExit(e.Log, "WithFilter", func() { keep = e.Keep(path) })
	return keep
}

// covers reports whether paths has path or a znode above it.
func covers(paths map[string]bool, path string) bool {
	for len(paths) > 0 {
		if paths[path] {
			return true
		}
		dir, name := framework.SplitPath(path)
		if name == "" {
			return false
		}
		path = dir
	}
	return false
}
