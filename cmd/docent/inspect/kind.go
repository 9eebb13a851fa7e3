package inspect

// A Kind is what a directory of contenders is.
type Kind string

// The kinds of locks. The zero Kind is that of a path without contenders.
const (
	Mutex     Kind = "mutex"
	ReadWrite Kind = "readwrite"
	Semaphore Kind = "semaphore"
	Leader    Kind = "leader"    // a LeaderLatch; a LeaderSelector is a [Mutex]
	Exclusive Kind = "exclusive" // docent's unfair mutex: its waiters have no znodes
	Schedule  Kind = "schedule"  // docent's job that runs once; its holder is the host at work
)

// Unfair reports whether an unfair mutex excludes: its holder can't be asked to release, and the next holder's znode
// has the same name.
func (k Kind) Unfair() bool { return k == Exclusive || k == Schedule }

// A State is what a contender does.
type State string

// The states of a contender. Unknown is that of a contender whose znode was not read, if its name
// does not decide.
const (
	Holds   State = "holds"
	Waits   State = "waits"
	Unknown State = "unknown"
)

// A Side is how a contender holds the lock.
type Side string

// The sides.
const (
	Alone  Side = "exclusive"
	Shared Side = "read"
	Writer Side = "write"
	Permit Side = "permit"
)

// A Library is what made a contender's znode, as far as the znode shows.
type Library string

// The libraries. A docent lock without metadata looks like Curator's. A request to release replaces
// the data, so the library of a revoked contender is unknown.
const (
	Docent       Library = "docent"
	Curator      Library = "curator"
	Kazoo        Library = "kazoo"
	OtherLibrary Library = "unknown"
)
