package waitqueue

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// reports tell others what an attempt waits for. No step of the attempt depends on them.
type reports struct {
	Telemetry *telemetry.Acquire // of its waiting; may be nil. The goroutine that drives may set it

	reported int  // how many contenders ahead OnPosition was called with last; -1 for none
	warned   bool // of contenders of another kind that came later

	mu    sync.Mutex       // guards following, which other goroutines may read
	seen  position         // without a predecessor if the attempt does not wait
	watch *framework.Watch // on the predecessor; nil before the reply
}

// ReportGranted reports that no contender is ahead of the attempt any more, unless some may be beyond the queue.
func (a *Attempt) ReportGranted() {
	if a.queue.Beyond == 0 {
		a.Report(0)
	}
}

// Report calls OnPosition if the number of contenders ahead has changed.
func (a *Attempt) Report(ahead int) {
	if a.queue.OnPosition != nil && ahead != a.reported {
		a.reported = ahead
		a.queue.OnPosition(ahead)
	}
}

func (r *reports) show(pos position, watch *framework.Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.watch = pos, watch
}

// BlockedBy returns the number of contenders that the last listing showed ahead of the attempt, its
// predecessor, and whether that holds the lock. data and st are the predecessor's when it was read to
// be watched, and empty if there was no reply to that. ahead is -1 if no listing showed a contender.
// BlockedBy may be called while another goroutine drives the attempt.
func (a *Attempt) BlockedBy() (ahead int, by queuenode.Node, holds bool, data []byte, st framework.Stat) {
	a.mu.Lock()
	pos, watch := a.seen, a.watch
	a.mu.Unlock()
	if pos.predecessor == "" {
		return -1, queuenode.Node{}, false, nil, framework.Stat{}
	}
	by, ok := queuenode.Parse(pos.predecessor, a.queue.Kinds)
	if !ok { // of another kind
		by, _ = queuenode.ParseAny(pos.predecessor)
	}
	if watch != nil {
		st, _ = watch.Stat()
		data = watch.Data()
	}
	beyond := a.queue.Beyond
	return pos.ahead + beyond, by, pos.holds && beyond == 0, data, st
}

// warnOfOthers logs once for each attempt that contenders of another kind have come while it waits. The fault is
// the path's, and one of them shows it as well as a list of all would.
func (a *Attempt) warnOfOthers(v view) {
	if a.warned || len(v.others) == 0 {
		return
	}
	a.warned = true
	a.queue.Client.Logger().Named("lock").Warn("another kind of lock has come to the path: both may be granted",
		zap.String("path", a.queue.Client.AbsolutePath(a.queue.Dir)), zap.String("contender", v.others[0].Name))
}

// A Blocker is what a call waits for. Without a Path no contender is known.
type Blocker struct {
	Ahead int    // how many contenders are ahead, -1 if that is not known
	Path  string // of the first of them, or of the predecessor
	Data  []byte // of that znode, which may be another program's
	Stat  framework.Stat
}

// A LongWait reports that a call waits long: after two seconds, and then after pauses that double up to
// five minutes. The zero value reports nothing. One goroutine uses it.
type LongWait struct {
	Report func(waited time.Duration, by Blocker) // nil for none

	timer *time.Timer
	begun time.Time
	count int // reports
}

// Bounds of the pauses between the reports of a LongWait.
const (
	firstLongWait = 2 * time.Second
	maxLongWait   = 5 * time.Minute
)

// Due returns a channel that is ready when Notify is to be called; nil for never. The first call begins the
// wait.
func (w *LongWait) Due() <-chan time.Time {
	if w.Report == nil {
		return nil
	}
	if w.timer == nil {
		w.begun, w.timer = time.Now(), time.NewTimer(firstLongWait)
	}
	return w.timer.C
}

// Notify reports that the call waits because of by.
func (w *LongWait) Notify(by Blocker) {
	w.count++
	w.timer.Reset(pace.Doubled(firstLongWait, maxLongWait, w.count))
	w.Report(time.Since(w.begun), by)
}

// Await returns nil when the watch has fired, which also rechecks itself, or the second or third one, each of
// which may be nil. It returns the error of the session if that ends first, and ctx's. A nil session does
// not end. blocker returns what the call waits for.
func (w *LongWait) Await(
	ctx context.Context, session *framework.SessionHold, blocker func() Blocker, watch, second, third *framework.Watch,
) error {
	var lost <-chan struct{}
	if session != nil {
		lost = session.Lost()
	}
	watch.Recheck()
	for {
		select {
		case <-watch.Fired():
			return nil
		case <-fired(second):
			return nil
		case <-fired(third):
			return nil
		case <-w.Due():
			w.Notify(blocker())
		case <-lost:
			return session.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
