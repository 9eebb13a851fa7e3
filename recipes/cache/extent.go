package cache

import (
	"strings"

	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
)

// An extent is a znode and what lies below it, as far as its limits allow. It is immutable.
type extent struct {
	root  string
	depth int               // how far it reaches below root; negative for no limit
	keep  func(string) bool // the user's filter; nil accepts every path
	log   *zap.Logger       // for a panic of keep
}

// has reports whether the znode at path, which is at or below root, belongs to the extent.
func (e extent) has(path string) bool {
	for at := e.root; at != path; {
		rest := strings.TrimPrefix(path, below(at))
		if len(rest) == len(path) || !e.deepens(at) {
			return false
		}
		name, _, _ := strings.Cut(rest, "/")
		if name == "" {
			return false // not a path, and the walk would not end
		}
		if at = zkpath.Join(at, name); !e.accepts(at) {
			return false
		}
	}
	return true
}

// deepens reports whether the depth allows children of the znode at path.
func (e extent) deepens(path string) bool { return e.depth < 0 || e.depthOf(path) < e.depth }

// depthOf returns how far path is below root.
func (e extent) depthOf(path string) int {
	if path == e.root {
		return 0
	}
	return 1 + strings.Count(path[len(below(e.root)):], "/")
}

// accepts reports whether the filter accepts path. If the filter panics, it does not.
func (e extent) accepts(path string) bool {
	if e.keep == nil {
		return true
	}
	keep := false
	usercall.Guard(e.log, "WithFilter", func() { keep = e.keep(path) })
	return keep
}

// covers reports whether paths has path or a znode above it.
func covers(paths map[string]bool, path string) bool {
	for len(paths) > 0 {
		if paths[path] {
			return true
		}
		dir, name := zkpath.Split(path)
		if name == "" {
			return false
		}
		path = dir
	}
	return false
}
