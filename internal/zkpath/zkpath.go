// Package zkpath takes paths of znodes apart and puts them together, and has the names of the epochs of
// exclusive locks.
package zkpath

import "strings"

// Join returns the path of the znode name below dir.
func Join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// Split returns the parent of the znode at path and the znode's name in that parent. The root's parent
// is the root, and its name is empty.
func Split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}

// epochSuffix ends the names of epochs. No other znode has such a name: see [IsEpoch].
const epochSuffix = ".docent-epoch"

// Epoch returns the path of the epoch of a path.
func Epoch(path string) string { return path + epochSuffix }

// IsEpoch reports whether path is that of an epoch, or is below one. Such a path has no epoch itself, and
// docent's locks refuse it. So no lock's znode is another lock's epoch, whatever paths their users
// choose.
func IsEpoch(path string) bool {
	if !strings.Contains(path, epochSuffix) {
		return false
	}
	for element := range strings.SplitSeq(path, "/") {
		if strings.HasSuffix(element, epochSuffix) {
			return true
		}
	}
	return false
}
