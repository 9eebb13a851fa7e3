package fault

import "strings"

// startsAtRoot reports whether the pattern can match a path at all.
func startsAtRoot(pattern string) bool {
	return strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "**")
}

// matchPath reports whether path matches pattern, in which * matches any run of characters but
// slashes and ** matches any run.
//
// path.Match is not used: brackets and backslashes are plain characters of a node's name, and it
// has no **.
func matchPath(pattern, path string) bool {
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return pattern == path
	}
	if !strings.HasPrefix(path, pattern[:star]) {
		return false
	}
	path = path[star:]
	rest, anything := strings.CutPrefix(pattern[star+1:], "*")
	for i := 0; ; i++ {
		if matchPath(rest, path[i:]) {
			return true
		}
		if i == len(path) || (path[i] == '/' && !anything) {
			return false
		}
	}
}
