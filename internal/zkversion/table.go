package zkversion

import (
	"strings"

	"github.com/docent-go/docent/internal/proto"
)

// A Behavior is something that the servers of some versions do.
type Behavior int

// The behaviors.
const (
	// ExistsNeedsRead: exists of a znode that the client may not read fails with NoAuth, and leaves
	// no watch. Older servers return the Stat to every client.
	ExistsNeedsRead Behavior = iota + 1
	// FiltersEvents: a client gets no event of a znode that it may not read at that moment. A
	// one-shot watch has ended nevertheless.
	FiltersEvents
	// FiltersMissed: so are the events of what a client missed while it had no connection (setWatches).
	FiltersMissed
	// EventsHaveZxid: the head of a watch event has the zxid of the change. Older servers send -1.
	EventsHaveZxid
	// ManyWatchesPerPath: a connection may have a one-shot and a lasting watch on one path. On older
	// servers the later one replaces the earlier one.
	ManyWatchesPerPath
	// RemovesByMode: removeWatches and checkWatches know lasting watches (types 4 and 5), and the
	// other types leave those alone. On older servers types 1 and 2 take away half of a lasting watch.
	RemovesByMode
	// TreesOmitChildren: a recursive watch never notifies of changed children.
	TreesOmitChildren
	// NoMD5: the server is in FIPS mode by default, and offers no SASL mechanism DIGEST-MD5.
	NoMD5
	// ResumesReadOnly: a read-only server resumes sessions that began at a quorum, from its memory.
	ResumesReadOnly
	// StrictTransactions: a transaction with a create of unknown flags is refused as a whole, and the
	// result of a create2 in it has a Stat. On older servers it is the result of a create.
	StrictTransactions
	// Throttles: the server can shed load with code -127 (throttled_op_wait_time).
	Throttles
)

// A behavior is a row of the table.
type behavior struct {
	Behavior
	since   since
	until   since  // the releases that ended it; nil for none
	patched bool   // distributors' patched releases have it too
	source  string // an issue, and what was read or run
}

// behaviors is the table. "run" names what was run, "read" the source that was read.
func behaviors() []behavior {
	return []behavior{
		{Behavior: ExistsNeedsRead, since: since{"3.8.4", "3.9.2"}, source: "ZOOKEEPER-2590; read: FinalRequestProcessor 3.9.5; run: 3.9.3, 3.9.6, and 3.8.0 without it"},
		{Behavior: FiltersEvents, since: since{"3.8.4", "3.9.2"}, patched: true, source: "CVE-2024-23944, ZOOKEEPER-4799; read: DataTree, NIOServerCnxn 3.8.4; run: Debian's 3.8.0, 3.9.6"},
		{Behavior: FiltersMissed, since: since{"3.9.4"}, source: "run: TestDifferential on 3.9.6 with it, 3.9.3 without; which of 3.9.4 to 3.9.6 began is not known"},
		{Behavior: EventsHaveZxid, since: since{"3.9.0"}, source: "ZOOKEEPER-4655; read: NIOServerCnxn 3.8.4, 3.9.5; run: 3.9.6"},
		{Behavior: ManyWatchesPerPath, since: since{"3.9.0"}, source: "ZOOKEEPER-4466; read: WatchManager 3.8.0; run: 3.9.6"},
		{Behavior: RemovesByMode, since: since{"3.9.0"}, source: "ZOOKEEPER-4471, ZOOKEEPER-4472; read: DataTree 3.8.0, Watcher 3.10; run: 3.9.6"},
		{Behavior: TreesOmitChildren, since: since{"3.9.0"}, source: "ZOOKEEPER-4475; run: 3.9.6"},
		{Behavior: NoMD5, since: since{"3.9.0"}, source: "ZOOKEEPER-4393 (zookeeper.fips-mode); run: 3.9.6"},
		{Behavior: ResumesReadOnly, since: since{"3.6.0"}, until: since{"3.7.0"}, source: "ZOOKEEPER-3863; read: ReadOnlyZooKeeperServer 3.7.0"},
		{Behavior: StrictTransactions, since: since{"3.9.0"}, source: "run: TestDifferential on 3.9.3, 3.9.6, and 3.8.0 without it"},
		{Behavior: Throttles, since: since{"3.7.0"}, source: "ZOOKEEPER-3683; read: RequestThrottler 3.8.0"},
	}
}

// Behaviors returns how a server of the version behaves.
func (v Version) Behaviors() map[Behavior]bool {
	found := make(map[Behavior]bool)
	for _, row := range behaviors() {
		found[row.Behavior] = (row.since.includes(v) || row.patched && v.Patched) && !row.until.includes(v)
	}
	return found
}

// Has reports whether a server of the version behaves so.
func (v Version) Has(b Behavior) bool { return v.Behaviors()[b] }

// Knows reports whether a server of the version, which is 3.6 or newer, knows the operation, which 3.8 has.
func (v Version) Knows(op proto.Opcode) bool {
	return op != proto.OpWhoAmI || since{"3.7.0"}.includes(v)
}

// A Fault is a known fault of some versions that users of locks should know.
type Fault struct {
	Issue string // such as "ZOOKEEPER-4537"
	Text  string // what happens to a client
	Fixed since  // nil if no release has fixed it
	Since since
	// Minded says that docent keeps its guarantees in spite of the fault, and how.
	Minded string
}

// String returns the fault in one line, with the releases that fix it.
func (f Fault) String() string {
	text := f.Issue + ": " + f.Text
	if f.Minded != "" {
		text += "; docent is safe: " + f.Minded
	}
	if len(f.Fixed) > 0 {
		text += "; mended in " + strings.Join(f.Fixed, ", ")
	}
	return text
}

// faults is the table of faults that concern locks.
func faults() []Fault {
	return []Fault{
		{
			Issue: "ZOOKEEPER-1675", Since: since{"3.6.0"},
			Text:   "a deposed leader replies to sync, and to the handshake that resumes a session, for up to syncLimit + 1 ticks",
			Minded: "the lease clock counts committed transactions only",
		},
		{
			Issue: "ZOOKEEPER-4537", Since: since{"3.6.0"}, Fixed: since{"3.6.4", "3.7.2", "3.8.1"},
			Text:   "a server may apply a committed transaction, and reply to it, only with the next request that it gets",
			Minded: "the client sends heartbeats and pings while a request is outstanding",
		},
		{
			Issue: "ZOOKEEPER-4466", Since: since{"3.6.0"}, Fixed: since{"3.9.0"},
			Text:   "a read that leaves a watch ends the recursive watch on its path",
			Minded: "reads of a path with a recursive watch leave none",
		},
		{
			Issue: "ZOOKEEPER-2623", Since: since{"3.6.0"}, Fixed: since{"3.8.5", "3.9.3"},
			Text:   "a check outside a transaction can make servers differ",
			Minded: "the client sends checks in transactions only",
		},
		{
			Issue: "CVE-2024-23944", Since: since{"3.6.0"}, Fixed: since{"3.8.4", "3.9.2"},
			Text: "watch events show the paths of znodes that the client may not read",
		},
	}
}

// Faults returns the faults that a server of the version has.
func (v Version) Faults() []Fault {
	var found []Fault
	for _, f := range faults() {
		patched := v.Patched && f.Issue == "CVE-2024-23944"
		if f.Since.includes(v) && !f.Fixed.includes(v) && !patched {
			found = append(found, f)
		}
	}
	return found
}
