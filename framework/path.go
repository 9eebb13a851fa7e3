package framework

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/errtype"
)

// ErrInvalidPath is returned for a path that ZooKeeper would refuse. The error that wraps it names
// the path and its fault.
var ErrInvalidPath = zkerr.ErrInvalidPath

// ValidatePath returns nil if path is a znode's path. Such a path starts with a slash, has no
// empty, "." or ".." element, and does not end in a slash unless it is "/". It has neither invalid
// UTF-8 nor a character that ZooKeeper refuses. These are null, control characters, private use
// U+E000–U+F8FF, and all from U+FFF0 on, emoji among them. The rules are the rules of
// org.apache.zookeeper.common.PathUtils, which sees emoji as surrogates. The error wraps
// [ErrInvalidPath].
func ValidatePath(path string) error {
	fault := pathFault(path)
	if fault == "" {
		return nil
	}
	return fmt.Errorf("%w %q: %s", ErrInvalidPath, errtype.Shortened(path), fault)
}

func pathFault(path string) string {
	switch {
	case plain(path):
		return ""
	case path == "":
		return "must not be empty"
	case path[0] != '/':
		return "must start with /"
	case path == "/":
		return ""
	case strings.HasSuffix(path, "/"):
		return "must not end in /"
	case !utf8.ValidString(path):
		return "must be valid UTF-8"
	}
	for element := range strings.SplitSeq(path[1:], "/") {
		switch element {
		case "":
			return "must not contain //"
		case ".", "..":
			return "must not contain the element " + element
		}
	}
	for i, r := range path {
		if forbidden(r) {
			return fmt.Sprintf("must not contain the character %U (at byte %d)", r, i)
		}
	}
	return ""
}

// plain reports whether the path is valid at first sight, as most paths are. Such a path has only
// printable ASCII, no empty element, and no dot, although a dot may be valid.
func plain(path string) bool {
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	for i := 1; i < len(path); i++ {
		if c := path[i]; c < ' ' || c > '~' || c == '.' || c == '/' && path[i-1] == '/' {
			return false
		}
	}
	return true
}

func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// fullPath returns the ensemble's path for a path of the view.
func (c *Client) fullPath(path string) string {
	switch {
	case c.prefix == "":
		return path
	case path == "/":
		return c.prefix
	}
	return c.prefix + path
}

// viewPath returns the view's path for a path of the ensemble.
func (c *Client) viewPath(full string) string {
	rest, ok := strings.CutPrefix(full, c.prefix)
	switch {
	case !ok:
		return full
	case rest == "":
		return "/"
	}
	return rest
}
