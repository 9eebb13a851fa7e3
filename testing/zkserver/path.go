package zkserver

import "strings"

// parentOf returns the parent of path as the tree knows it, "" for the root, and
// the node's name. Path must have a slash.
func parentOf(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

// hasParent reports whether path can be split by parentOf; the checks here are the
// few that ZooKeeper makes before it looks at anything else.
func hasParent(path string) bool {
	return strings.Contains(path, "/") && !strings.Contains(path, "\x00")
}

// watchPath returns the name under which a node is watched: the root's second name
// is for the tree only.
func watchPath(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// isSpecial reports whether path can't be deleted.
func isSpecial(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}

// validPath reports whether path is a node's full path.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, forbiddenRune)
}

// forbiddenRune reports whether a path can't hold c: control characters, private use
// and specials. ZooKeeper counts in UTF-16: what is beyond 0xffff is made of
// surrogates, which are forbidden too, and so is what isn't UTF-8.
func forbiddenRune(c rune) bool {
	return c <= 0x1f || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0
}
