// Package counter shares a number, or another value, among processes: Curator's
// DistributedAtomicLong, DistributedAtomicInteger, SharedCount, SharedValue and
// DistributedAtomicValue.
//
// Begin with [New] for a number, and with [NewValue] for anything else. A change is applied once, or not at all,
// or the error wraps [framework.ErrUnknownOutcome]. Then it may have been applied, because its reply was lost and
// another client may have written since. A caller that can't live with that keeps the numbers with an operation's
// own record, in one transaction, or takes numbers with gaps by [Counter.Take].
//
// Stability: stable.
//
// # Znodes
//
// The znode at the path is persistent and has the bytes of Curator's: a [Counter] has 8, or 4 with
// [WithInt32], big endian; a [Value] has those of its [model.Codec]. It is created, with its parents as
// containers, by the first change. The client must not use framework.WithCompression, unless every
// other process does.
//
// # Versions
//
// A change is a write under the version of the znode that was read. A version is an int32: it
// overflows, and reaches −1 after 4,294,967,295 writes, which means "any version" to a server. A
// change at −2 therefore writes twice in one transaction. At −1, which other programs can leave,
// a change fails with [ErrVersion].
//
// If another client deletes the znode and creates it again, it may get the version of the former
// one. A change that was made under that version is then applied to the new znode, and returns
// ErrVersion. So don't delete a counter that is in use: set it.
//
// That [Counter.CompareAndSet] returns false is never taken from a version: the number was read during
// the call, after a transaction that changes nothing.
//
// # Errors
//
// [ErrOverflow], [ErrCorrupt], [ErrVersion], and the client's errors, as package framework describes
// them. Everything may be called concurrently.
package counter

import (
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/args"
)

// recipe begins the text of errors.
const recipe args.Recipe = "counter"

// Errors of counters and values.
var (
	// ErrOverflow is returned if the result is no int64, or no int32 with [WithInt32]. Nothing is
	// written.
	ErrOverflow = errtype.New("the result overflows", "overflow")
	// ErrCorrupt is returned if the znode's data is not a counter's. Nothing is written.
	ErrCorrupt = errtype.New("the znode's data is not that of a counter", "corrupt")
	// ErrVersion is returned for a change of a znode whose version is −1. Nothing is written then.
	// If another client deleted the znode and created it again, the change may have been applied to
	// the new znode. ErrVersion then says so, after the fact.
	ErrVersion = errtype.New("the znode's version can't be relied on", "version")
)
