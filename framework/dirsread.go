package framework

import (
	"strings"
	"sync"

	"github.com/docent-go/docent/internal/zkpath"
)

// dirsRead has what is known of the data of the znodes in each directory. The znodes of one directory are mostly of one
// kind, so their lengths are known from those that were read. Those of other directories only make it more certain.
type dirsRead struct {
	mu   sync.Mutex
	dirs map[string]*dirRead
}

// A dirRead has how many reads were answered, and the mean length of the latest, in bytes.
type dirRead struct{ answered, mean int }

const (
	maxDirsRead = 1000
	latest      = 64
	maxAnswered = 1 << 20 // beyond it, counting is of no use

	// unreadData is the length that data are expected to have if nothing is known.
	unreadData  = 512 << 10
	perAnswered = 2
	longest     = 1 << 20 // data of this length, or more, are read one by one

	// enough is how many answers of a directory say more about its data than the latest answers of any directory do.
	enough = 16
)

// A readPlan has the order of the reads of one call. A server makes the reply to one request as a whole, and needs memory
// for that, so a call begins with one znode of each directory that was not read yet. Then come those of directories that
// were, and when the first are answered, the others.
type readPlan struct {
	paths        []string // in the order in which they are read
	order        []int    // the places of these paths in the call
	first, known int      // how many are of the first kind, and of the second
	sent         int
	atOnce       bool // few are sent at once, though of some nothing is known
}

// A call of few reads sends all of them at once: fewTogether as one request, and more as requests of their own, if a
// directory was not read yet.
const (
	fewReads    = 5
	fewTogether = 2
)

// plan returns the order in which the paths of a call are read.
func (d *dirsRead) plan(paths []string) readPlan {
	d.mu.Lock()
	defer d.mu.Unlock()
	var first, known, others []int
	begun := make(map[string]bool)
	for i, path := range paths {
		dir, _ := zkpath.Split(path)
		switch {
		case d.dirs[dir] != nil:
			known = append(known, i)
		case begun[dir]:
			others = append(others, i)
		default:
			begun[dir] = true
			first = append(first, i)
		}
	}
	p := readPlan{first: len(first), known: len(known)}
	if len(paths) <= fewReads {
		p.atOnce = p.first > 0
		p.first, p.known = 0, len(paths)
	}
	p.order = append(append(first, known...), others...)
	p.paths = make([]string, len(paths))
	for i, at := range p.order {
		p.paths[i] = paths[at]
	}
	return p
}

// next returns those of the paths that may be sent next, after so many were answered.
func (p *readPlan) next(answered int) []string {
	switch {
	case p.sent < p.first:
		return p.paths[p.sent:p.first]
	case p.sent < p.first+p.known:
		return p.paths[p.sent : p.first+p.known]
	case answered >= p.first:
		return p.paths[p.sent:]
	}
	return nil
}

// uncertain returns how much longer data may be than those that so many reads had.
func uncertain(answered int) int { return unreadData / (1 + perAnswered*answered) }

// lengths are what the data of the reads of one request are expected to have, in bytes.
type lengths struct {
	mean, most int  // of one read; most has what is uncertain about it, too
	known      bool // by the directories of these reads alone
}

// together returns how many of the first paths are read by one request, and how long their data are: unreadData at most,
// with what is uncertain. That shrinks with the reads that were answered in these directories, and with the number of
// directories that are known.
func (d *dirsRead) together(paths []string) (n int, each lengths) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var here *dirRead
	known := true
	dir, length, answered := "", 0, len(d.dirs)
	for i, path := range paths {
		if parent, _ := zkpath.Split(path); i == 0 || parent != dir {
			if dir, here = parent, d.dirs[parent]; here == nil {
				here = new(dirRead)
			}
			answered += here.answered
		}
		known = known && here.answered >= enough && here.mean > 0 // data of 0 bytes may be those of absent znodes
		length += here.mean
		sum := length + (i+1)*uncertain(answered)
		if i > 0 && sum > unreadData {
			break
		}
		n, each = i+1, lengths{mean: length / (i + 1), most: sum / (i + 1), known: known}
	}
	return n, each
}

// add records the length of a znode's data; 0 if it does not exist.
func (d *dirsRead) add(path string, length int) {
	dir, _ := zkpath.Split(path)
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.dirs[dir]
	if one == nil {
		d.makeRoom()
		one = new(dirRead)
		d.dirs[strings.Clone(dir)] = one // not the whole path
	}
	one.answered = min(one.answered+1, maxAnswered)
	one.mean += (min(length, longest) - one.mean) / min(one.answered, latest)
}

// makeRoom forgets some directory if there are too many.
func (d *dirsRead) makeRoom() {
	for dir := range d.dirs {
		if len(d.dirs) < maxDirsRead {
			return
		}
		delete(d.dirs, dir)
	}
}
