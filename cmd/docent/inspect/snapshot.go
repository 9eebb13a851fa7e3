package inspect

import "time"

// A Snapshot is what [Scan] found. Its locks were read one after another.
type Snapshot struct {
	At     time.Time // when the scan began, by this process's clock
	Locks  []Lock    // with a contender each, but for schedules; in the order of their paths
	Unread []Unread
	Large  []Listing

	// LeftOut is how many znodes the limits of [Follow] leave out. It does not count what is below them.
	LeftOut int

	// Complete reports that no limit ended the scan. Unread has what could not be read.
	Complete bool
}

// Unread is a path that could not be read.
type Unread struct {
	Path string
	Err  error // matches [framework.ErrNoAuth], [framework.ErrTooLarge] or [framework.ErrNotGzip], or the path is invalid
}

// A Listing is the names of a directory's children. By default, Java's clients refuse more than 1 MiB.
// [Scan] notes the listings of more than half of it.
type Listing struct {
	Path  string
	Bytes int
}

// maxListing is the default of ZooKeeper's jute.maxbuffer.
const maxListing = 1 << 20

// size returns how many bytes the names have in a reply.
func size(names []string) int {
	n := 0
	for _, name := range names {
		n += len(name) + 4
	}
	return n
}

// Limits bound a [Scan]. A field that is 0 has its default.
type Limits struct {
	Depth int // of directories below the root; default 8
	Max   int // number of locks, and of other directories; default 10,000
	Rate  int // listings and reads per second; default: no bound

	// HoldersOnly reads the znodes of holders alone. Waiters then have the fields that follow from
	// their names, and the locks are not Complete.
	HoldersOnly bool

	// OnProgress is called again and again in the goroutine of Scan, with the numbers of locks and of
	// other directories so far. It may be nil.
	OnProgress func(locks, others int)
}

// The defaults of Limits.
const (
	defaultDepth = 8
	defaultMax   = 10_000
)

// Waiting returns the number of contenders that wait.
func (s Snapshot) Waiting() int {
	n := 0
	for _, l := range s.Locks {
		n += len(l.Waiters())
	}
	return n
}

// Lock returns the lock at the path.
func (s Snapshot) Lock(path string) (Lock, bool) {
	for _, l := range s.Locks {
		if l.Path == path {
			return l, true
		}
	}
	return Lock{}, false
}
