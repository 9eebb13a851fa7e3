package framework

import (
	"sync"

	"github.com/docent-go/docent/internal/zkpath"
)

// dirsRead has what is known of the data of the znodes in each directory. The znodes of one directory are mostly of one
// kind, so their lengths are known from those that were read; those of other directories say nothing.
type dirsRead struct {
	mu   sync.Mutex
	dirs map[string]dirRead
}

// A dirRead has how many reads were answered, and the greatest length of the latest.
type dirRead struct{ answered, longest int }

const (
	maxDirsRead = 1000
	forgetting  = 16 // after a few times so many replies, a long one is forgotten
)

func (d *dirsRead) of(path string) dirRead {
	dir, _ := zkpath.Split(path)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dirs[dir]
}

// add records the length of a znode's data.
func (d *dirsRead) add(path string, length int) {
	dir, _ := zkpath.Split(path)
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.dirs[dir]
	if known.answered == 0 && len(d.dirs) == maxDirsRead {
		clear(d.dirs) // rare, and costs a round trip or two for each
	}
	d.dirs[dir] = dirRead{
		answered: min(known.answered+1, readsTogether*partsAhead), // more is of no use
		longest:  max(length, known.longest-known.longest/forgetting),
	}
}
