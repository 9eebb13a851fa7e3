package inspect

import (
	"time"

	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
)

// A Lock is a path at which contenders hold or wait, or a [Schedule].
type Lock struct {
	Path       string
	Kind       Kind // "" if the path has no contender
	Permits    int  // how many contenders may hold at once; 0 if that is unknown or has no bound
	Contenders []Contender

	// Runs are the last runs of a [Schedule], in the order in which they began. One that has no end, and whose
	// lock is not held any more, is [schedule.Lost]. A view of a [Live] may show a run that has just ended as lost
	// for a moment, because it learns of the lock's end before it has read the end of the run.
	Runs []schedule.Run

	// Unknown reports that the znodes are a Schedule's and the data are not, or are of another version. Then
	// Runs and Contenders are not known, and the Schedule's lock below the path is an [Exclusive] of its own.
	Unknown bool

	// Foreign are the paths of children that are no contenders and take a permit nevertheless: those
	// of a semaphore's leases.
	Foreign []string

	// Mixed reports that contenders of several formats are in the directory. Contenders of one format
	// do not exclude those of another. Each format has its own order in Contenders.
	Mixed bool

	// Complete reports that each contender's znode was read. Otherwise some have a path, a number, a
	// side and a state alone.
	Complete bool
}

// Holders returns the contenders that hold the lock.
func (l Lock) Holders() []Contender { return l.in(Holds) }

// Waiters returns the contenders that wait, in the order of the queue.
func (l Lock) Waiters() []Contender { return l.in(Waits) }

func (l Lock) in(state State) []Contender {
	var found []Contender
	for _, c := range l.Contenders {
		if c.State == state {
			found = append(found, c)
		}
	}
	return found
}

// A Contender is a holder or a waiter: one ephemeral znode. Its fields from Session on are zero if
// the znode was not read.
type Contender struct {
	Znode    string // path of its znode
	Sequence int64  // the number in the znode's name; 0 if it has none
	State    State
	Side     Side
	By       Library

	// WaitsFor are the znodes of the contenders that have to go first: those directly ahead. All of
	// them have to go, or with AnyOf one. The list is empty for a holder.
	WaitsFor []string
	AnyOf    bool

	// Turn is the path of a second znode: that of a semaphore's contender in the queue, until it has
	// left the queue. "" if there is none.
	Turn string

	Session   int64     // that the znode belongs to; 0 for a znode that no session ends
	Czxid     int64     // the transaction that created the znode: the holder's fence
	Created   time.Time // by the servers' clock
	Revoked   bool      // another client has asked it to release, which replaced its data
	RevokedAt time.Time // of that request, by the servers' clock
	Meta      *lease.Metadata
	Label     string // the znode's data as text if there is no metadata: an address, an identifier
	Data      []byte // the data that the contender was given

	queue int // differs between contenders of several formats in one directory
}

// Read reports whether the contender's znode was read.
func (c Contender) Read() bool { return c.Czxid != 0 }
