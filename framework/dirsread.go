package framework

import (
	"sync"

	"github.com/docent-go/docent/internal/zkpath"
)

// dirsRead has how many znodes' data were read in each directory. The znodes of one directory are mostly of one kind, so
// their lengths are known from the first ones; those of other directories say nothing.
type dirsRead struct {
	mu   sync.Mutex
	dirs map[string]int
}

const maxDirsRead = 1000

func (d *dirsRead) of(path string) int {
	dir, _ := zkpath.Split(path)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dirs[dir]
}

// add records a read of each of the paths.
func (d *dirsRead) add(paths []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, path := range paths {
		dir, _ := zkpath.Split(path)
		if n := d.dirs[dir]; n > 0 || len(d.dirs) < maxDirsRead {
			d.dirs[dir] = min(n+1, readsTogether*partsAhead) // more is of no use
			continue
		}
		clear(d.dirs) // rare, and costs a round trip or two for each
		d.dirs[dir] = 1
	}
}
