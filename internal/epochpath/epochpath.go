// Package epochpath has the names of the epochs of exclusive locks.
package epochpath

import "strings"

// suffix ends the names of epochs. No other znode has such a name: see [Is].
const suffix = ".docent-epoch"

// Of returns the path of the epoch of a path.
func Of(path string) string { return path + suffix }

// Is reports whether path is that of an epoch, or is below one. Such a path has no epoch itself, and
// docent's locks refuse it. So no lock's znode is another lock's epoch, whatever paths their users
// choose.
func Is(path string) bool {
	if !strings.Contains(path, suffix) {
		return false
	}
	for element := range strings.SplitSeq(path, "/") {
		if strings.HasSuffix(element, suffix) {
			return true
		}
	}
	return false
}
