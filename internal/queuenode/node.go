// Package queuenode knows the znodes with which the contenders of a lock queue: their names, their
// order, which contender waits for which, and the data that asks a holder to release. It sends no
// request.
//
// Names and order are Apache Curator's (LockInternals and StandardLockInternalsDriver in
// org.apache.curator.framework.recipes.locks), and kazoo's.
package queuenode

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The kinds of contenders: what their znodes' names have before the number. Those of one group exclude
// each other as their recipe says, and no others.
const (
	MutexKind = "lock-"  // of mutexes, LeaderSelectors, and the queue of a semaphore
	LatchKind = "latch-" // of LeaderLatches

	ReadKind  = "__READ__" // of InterProcessReadWriteLocks
	WriteKind = "__WRIT__"

	LeaseKind = "lease-" // of a semaphore's permits, in LeasesDir

	KazooKind     = "__lock__" // of kazoo's Lock and WriteLock
	KazooReadKind = "__rlock__"
)

// all are the kinds.
var all = [...]string{ //nolint:gochecknoglobals // immutable
	MutexKind, LatchKind, ReadKind, WriteKind, LeaseKind, KazooKind, KazooReadKind,
}

// LeasesDir is the name of the directory of a semaphore's permits, below the semaphore's path. A
// contender of a semaphore claims the path with its znode there.
const LeasesDir = "leases"

// Contenders returns the nodes of contenders of all kinds among the names of a directory's children.
func Contenders(names []string) []Node { return Sort(names, all[:]...) }

// ParseAny is [Parse] for all kinds.
func ParseAny(name string) (Node, bool) { return Parse(name, all[:]) }

// ParseUnknown returns the contender of a library that docent does not know which the name may mean: it has no
// kind, and ends in exactly the ten digits of a sequential znode. It is one only if the znode is ephemeral.
func ParseUnknown(name string) (Node, bool) {
	if _, known := ParseAny(name); known || len(name) < sequenceDigits {
		return Node{}, false
	}
	prefix, digits := name[:len(name)-sequenceDigits], name[len(name)-sequenceDigits:]
	number, err := strconv.ParseUint(digits, 10, 31)
	longer := strings.TrimRight(prefix, "0123456789") != prefix // a time, or another number
	return Node{Name: name, Sequence: int32(number)}, err == nil && !longer
}

// A Node is a contender's znode in a queue.
type Node struct {
	Name     string // of the znode, without its parent
	Kind     string // which of the queue's kinds it has
	Sequence int32

	rank int // of the kind among the queue's
}

// Recipe names the recipes that have the node's kind, for an error.
func (n Node) Recipe() string {
	switch n.Kind {
	case MutexKind:
		return "a mutex (or an election in LeaderSelector's format)"
	case LatchKind:
		return "an election in LeaderLatch's format"
	case ReadKind, WriteKind:
		return "a read/write lock"
	case LeaseKind:
		return "a semaphore"
	case KazooKind, KazooReadKind:
		return "a lock of kazoo's"
	}
	return "a library that docent does not know"
}

// Digits returns the number as it is in the name.
func (n Node) Digits() string {
	return n.Name[strings.LastIndex(n.Name, n.Kind)+len(n.Kind):]
}

// lastSequence is where a directory's counter ends. The creations that are outstanding together at
// that moment get this number, then the least negative one, and so on upwards. All later creations
// get this number again. A directory that is never empty is never removed. At 1,000 contenders a
// second its counter ends after 25 days.
const lastSequence = math.MaxInt32

// Overflowed reports whether the number is one from the end of the directory's counter. Such a node
// comes after all others, and its number does not give its order among the overflowed ones.
func (n Node) Overflowed() bool { return n.Sequence == lastSequence || n.Sequence < 0 }

// sequenceDigits is the least length of a sequence number: the server pads it to ten characters,
// which include the sign of a negative number.
const sequenceDigits = 10

// Parse returns the contender that name means. Curator sorts by what follows the last occurrence of
// the kind, so a name contends however it begins. Other children of the directory are ignored.
func Parse(name string, kinds []string) (Node, bool) {
	for rank, kind := range kinds {
		i := strings.LastIndex(name, kind)
		if i < 0 {
			continue
		}
		digits := name[i+len(kind):]
		if len(digits) < sequenceDigits || digits[0] == '+' {
			continue
		}
		seq, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			continue
		}
		return Node{Name: name, Kind: kind, Sequence: int32(seq), rank: rank}, true
	}
	return Node{}, false
}

// Sort returns the contenders among the names of a directory's children, in the order of their
// numbers. Nodes that are [Node.Overflowed] come last; the caller has to put them in order.
// Nodes of one number are in the order of their kinds.
func Sort(names []string, kinds ...string) []Node {
	nodes := make([]Node, 0, len(names))
	for _, name := range names {
		if node, ok := Parse(name, kinds); ok {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, Compare)
	return nodes
}

// Compare orders the nodes of a queue; those past the end of the counter by their numbers alone.
func Compare(a, b Node) int {
	// As an unsigned number each comes after those that the server gave out before it.
	return cmp.Or(cmp.Compare(uint32(a.Sequence), uint32(b.Sequence)), cmp.Compare(a.rank, b.rank), cmp.Compare(a.Name, b.Name))
}

// Index returns the index of the node with the name, or -1.
func Index(nodes []Node, name string) int {
	return slices.IndexFunc(nodes, func(n Node) bool { return n.Name == name })
}

// ExclusivePredecessor is the Predecessor of a queue whose first contender alone holds the lock.
func ExclusivePredecessor(_ []Node, _, before int) int { return before - 1 }

// SharedPredecessor returns the Predecessor of a queue in which contenders of the kind write hold the
// lock alone, and all others share it. A writer waits for the node before it. A reader waits for the
// nearest writer ahead. A writer of the reader's own number has the same owner, who held the write
// side when it took the read side. At the end of the counter several nodes have one number, and no
// owner of the write side gets the read side.
func SharedPredecessor(write string) func(nodes []Node, own, before int) int {
	return func(nodes []Node, own, before int) int {
		if nodes[own].Kind == write {
			return before - 1
		}
		for i := before - 1; i >= 0; i-- {
			if nodes[i].Kind == write && (nodes[i].Sequence != nodes[own].Sequence || nodes[i].Overflowed()) {
				return i
			}
		}
		return -1
	}
}

// RevokeMark is the data of a contender's znode after another client has asked it to release:
// Curator's (org.apache.curator.framework.recipes.locks.Revoker).
const RevokeMark = "__REVOKE__"

// RequestsRelease reports whether the data of a contender's znode, of that version, is a request to
// release. Data of version 0 is the contender's own.
func RequestsRelease(data []byte, version int32) bool {
	return version != 0 && string(inflated(data)) == RevokeMark
}

// inflated returns the data, uncompressed if necessary: a Curator process that compresses data
// compresses requests too.
func inflated(data []byte) []byte {
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data
	}
	plain, err := io.ReadAll(io.LimitReader(compressed, int64(len(RevokeMark))+1))
	if err != nil {
		return data
	}
	return plain
}
