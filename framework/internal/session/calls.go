package session

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long one of several calls may take before another goroutine goes on with the rest.
const patience = time.Millisecond

// calledByOne is how many calls one goroutine makes, if there are processors for more goroutines. To
// start a goroutine takes less time than so many calls.
const calledByOne = 1000

// A callGroup makes n calls of functions that may block forever, panic or end their goroutine. None of
// them keeps the others from being called.
type callGroup struct {
	n    int
	call func(i int)
	done chan struct{} // closed when all calls have returned

	next atomic.Int64 // the next call
	left atomic.Int64 // calls that have not returned

	mu     sync.Mutex // guards panics
	panics []any
}

// startCalls begins to make the calls, on several goroutines if there are many. The goroutines end with
// the calls. [callGroup.await] has to follow.
func startCalls(n int, call func(i int)) *callGroup {
	g := &callGroup{n: n, call: call, done: make(chan struct{})}
	g.left.Store(int64(n))
	if n == 0 {
		close(g.done)
		return g
	}
	for range min(runtime.GOMAXPROCS(0), 1+n/calledByOne) {
		go g.work()
	}
	return g
}

// await returns when all calls have returned, but for those that block. While none returns, it starts
// one more goroutine for the rest, again and again.
func (g *callGroup) await() {
	if g.n == 0 {
		return
	}
	ticker := time.NewTicker(patience)
	defer ticker.Stop()
	before := g.left.Load()
	for {
		select {
		case <-g.done:
			return
		case <-ticker.C:
		}
		left := g.left.Load()
		if left == before {
			if g.next.Load() >= int64(g.n) {
				return
			}
			go g.work()
		}
		before = left
	}
}

// within reports whether all calls have returned, for which it waits so long.
func (g *callGroup) within(d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-g.done:
		return true
	case <-limit.C:
		return false
	}
}

// work makes calls until all are begun.
func (g *callGroup) work() {
	for g.one() {
	}
}

// one makes the next call. It returns false if there is none.
func (g *callGroup) one() (more bool) {
	i := int(g.next.Add(1)) - 1
	if i >= g.n {
		return false
	}
	defer func() {
		if v := recover(); v != nil {
			g.mu.Lock()
			g.panics = append(g.panics, v)
			g.mu.Unlock()
			more = true
		} else if !more { // runtime.Goexit, which ends this goroutine
			go g.work()
		}
		if g.left.Add(-1) == 0 {
			close(g.done)
		}
	}()
	g.call(i)
	return true
}

// panicked returns the values of the calls that have panicked since it was called last.
func (g *callGroup) panicked() []any {
	g.mu.Lock()
	defer g.mu.Unlock()
	fresh := g.panics
	g.panics = nil
	return fresh
}
