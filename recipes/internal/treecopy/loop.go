package treecopy

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/pathtree"
	"github.com/docent-go/docent/recipes/internal/readlist"
	"github.com/docent-go/docent/recipes/internal/treesource"
)

// A Loop follows the changes of a part of the tree, and keeps a copy of it. It belongs to the goroutine
// of Run. Any goroutine may call Sync and Valid.
//
// One rule makes the copy complete: what was read counts only if the watch was valid from before the
// request until after the reply. Then every later change is among the source's changes, and marks its
// path to be read again.
type Loop struct {
	opts        Options
	desk        desk
	tree        pathtree.Tree[Znode]   // the copy
	unread      pathtree.Tree[Refusal] // what it leaves out
	source      treesource.Source
	marks       readlist.List
	asks        bool                           // before it reads, it has to ask for what has been committed by now
	lost        bool                           // the source is not valid: Next will tell when it is
	began       time.Time                      // the fill
	fill        uint64                         // the latest mark that it has to wait for
	confirmed   map[string]struct{}            // what has been read since the fill began; nil if that is over
	batch       int                            // how many znodes are read at a time
	refused     map[string]struct{}            // what can't be read and was logged
	retryAt     time.Time                      // when that is tried again; zero for not
	rootRefused bool                           // the root can't be read: the copy is what it was before
	callers     []*waiter                      // calls of Sync whose replies came before the latest changes
	waiters     []*waiter                      // those with until set
	over        context.Context                // has ended
	free        time.Time                      // when the rate allows the next batch
	leftOut     map[string]map[string]struct{} // names of what the limit leaves out, by directory
	numberOut   int                            // of names in leftOut
	moreOut     int                            // left out, and not in leftOut
}

// New returns a Loop that has yet to run.
func New(opts Options) *Loop {
	over, cancel := context.WithCancel(context.Background()) // ended at once: drain does not wait
	cancel()
	return &Loop{opts: opts, refused: make(map[string]struct{}), leftOut: make(map[string]map[string]struct{}), over: over}
}

// A desk is what other goroutines and the loop have in common.
type desk struct {
	mu      sync.Mutex        // guards following; never held across a request or a callback
	source  treesource.Source // nil before there is one
	wake    func()            // wakes the loop if it waits; nil if it does not
	waiters []*waiter         // that the loop has yet to see
}

// A waiter is a call of Sync.
type waiter struct {
	done  chan struct{} // closed by the loop when the copy has what was committed before the call
	until uint64        // the latest mark when the loop saw it
}

// Sync returns a channel that is closed when the loop has read all that it has been notified of by now.
func (l *Loop) Sync() <-chan struct{} {
	w := &waiter{done: make(chan struct{})}
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	l.desk.waiters = append(l.desk.waiters, w)
	if l.desk.wake != nil {
		l.desk.wake()
	}
	return w.done
}

// Valid reports whether the server notifies of every change by now.
func (l *Loop) Valid() bool {
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	return l.desk.source != nil && l.desk.source.Valid()
}

// isConfirmed reports whether the znode at path, which the copy has, was read since the fill began.
// Otherwise it may have been deleted and created again, and what is read below it would be removed
// with it.
func (l *Loop) isConfirmed(path string) bool {
	if l.confirmed == nil {
		return true
	}
	_, ok := l.confirmed[path]
	return ok
}

// unfollowed returns the znodes above path that may have been deleted since they were read, the lowest
// first.
func (l *Loop) unfollowed(path string) (above []string) {
	for path != l.opts.Extent.Root {
		if path, _ = framework.SplitPath(path); !l.source.Follows(path) {
			above = append(above, path)
		}
	}
	return above
}

func (l *Loop) confirm(path string) {
	if l.confirmed != nil {
		l.confirmed[path] = struct{}{}
	}
}

// begin begins to read everything.
func (l *Loop) begin() {
	l.opts.Unseen()
	l.marks.Clear()
	clear(l.leftOut)
	l.numberOut, l.moreOut = 0, 0
	l.marks.Add(l.opts.Extent.Root, readlist.WithAll)
	l.confirmed, l.batch = make(map[string]struct{}), minBatch
	l.asks, l.lost, l.rootRefused, l.began = true, false, false, time.Now()
	for _, w := range l.waiters {
		w.until = l.marks.Last()
	}
}

// drain returns the changes that are there, and waits for none. An error it leaves to next.
func (l *Loop) drain() []framework.Change {
	changes, _ := l.source.Next(l.over)
	return changes
}
