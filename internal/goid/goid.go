// Package goid distinguishes goroutines by the number that the runtime gives each of them.
//
// Go hides that number from programs on purpose. docent uses it only to recognise the owner of a
// reentrant lock without an explicit Owner, and a call from inside a listener. If you can pass a
// value along, do that instead.
//
// The number is read in one of two ways. The runtime prints it in the header of each stack trace,
// which is certain and costs microseconds, more on a deep stack. The module
// github.com/petermattis/goid reads it from the runtime's record of the goroutine. That costs
// nanoseconds, but the module knows the record's layout only up to the Go version it was written
// for. So the first use compares the two, and if they differ, only the header is used from then on.
package goid

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"

	"github.com/petermattis/goid"
)

// ID returns the number of the calling goroutine. It is positive, is the same
// for as long as the goroutine lives, and is never given to another goroutine
// of the process. ID may be called concurrently.
func ID() uint64 { return reader()() }

// reader holds which of the two ways is right in this process: the one fact
// that is kept, since finding it out costs several stack traces.
var reader = sync.OnceValue(func() func() uint64 { return choose(fromRecord) }) //nolint:gochecknoglobals // a process has one runtime

// choose returns fast if it agrees with the header, and the header's way if not.
func choose(fast func() uint64) func() uint64 {
	if agrees(fast) {
		return fast
	}
	return fromHeader
}

// agrees reports whether fast and the header tell the same number, on the
// calling goroutine and on some others: what a wrong layout shows in place of
// the number may be right by chance once, but not on all of them.
func agrees(fast func() uint64) bool {
	const others = 4 // more would not make chance less likely by much

	equal := make([]bool, others)
	var wg sync.WaitGroup
	for i := range equal {
		wg.Go(func() { equal[i] = fast() == fromHeader() })
	}
	wg.Wait()
	for _, ok := range equal {
		if !ok {
			return false
		}
	}
	return fast() == fromHeader()
}

// fromRecord reads the number from the runtime's record of the goroutine.
func fromRecord() uint64 { return uint64(goid.Get()) }

// fromHeader reads the number from the header of the goroutine's stack trace,
// "goroutine 18 [running]:".
func fromHeader() uint64 {
	var buf [64]byte // what runtime.Stack does not find room for, it leaves out
	header := buf[:runtime.Stack(buf[:], false)]

	number, _ := bytes.CutPrefix(header, []byte("goroutine "))
	number, _, _ = bytes.Cut(number, []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		// A wrong identity would grant one owner's lock to another.
		panic("goid: unknown stack trace header: " + strconv.Quote(string(header)))
	}
	return id
}
