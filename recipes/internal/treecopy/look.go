package treecopy

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/readlist"
	"github.com/docent-go/docent/recipes/internal/treesource"
)

// How many znodes are read at a time. A heartbeat of the session queues behind their replies. So a
// fill begins with few, and reads as many at a time as are answered within a small part of the
// session timeout: over a slow link, those are few.
const (
	minBatch      = 8
	maxBatch      = 1000
	maxGrowth     = 4  // from one batch to the next
	batchFraction = 16 // of the session timeout, for one batch
)

// nextBatch returns how many znodes to read after a batch that took a while.
func nextBatch(batch int, took, timeout time.Duration) int {
	if timeout <= 0 {
		timeout = framework.DefaultSessionTimeout // there is no session at the moment
	}
	fits := float64(batch) * float64(timeout/batchFraction) / float64(max(took, time.Microsecond))
	return int(min(max(fits, minBatch), float64(batch*maxGrowth), maxBatch))
}

// pause is the time between a failure and the next attempt.
const pause = 500 * time.Millisecond

// look reads the oldest marks and applies what it found. It returns an error if the client is closed.
func (l *Loop) look(ctx context.Context) error {
	if l.lost || l.marks.Empty() {
		return nil
	}
	if l.asks { // so that reads see all that has been committed by now
		if err := l.opts.Client.Ready(ctx); err != nil {
			return l.fail(ctx, err)
		}
		l.asks = false
		l.take(l.drain())
		l.fill = l.marks.Last()
		return nil
	}
	taken, began := l.marks.Take(l.batch), time.Now()
	sights, err := l.read(ctx, taken)
	if err != nil {
		l.marks.PutBack(taken)
		return l.fail(ctx, err)
	}
	if len(taken) == l.batch {
		l.batch = nextBatch(l.batch, time.Since(began), l.opts.Client.Session().Timeout)
	}
	valid := l.source.Valid() // before drain: if it is, what drain returns is all
	changes := l.drain()
	if !valid || slices.ContainsFunc(changes, isUnseen) {
		l.marks.PutBack(taken)
		l.lost = true
		l.take(changes)
		return nil
	}
	l.apply(sights, changes)
	return nil
}

func isUnseen(change framework.Change) bool { return change.Kind == framework.EventUnseen }

// read reads what was taken. It returns an error if the ensemble did not answer.
func (l *Loop) read(ctx context.Context, taken []*readlist.Mark) ([]*sight, error) {
	wants := make([]treesource.Want, len(taken))
	for i, k := range taken {
		wants[i] = treesource.Want{Path: k.Path, List: l.opts.Extent.Deepens(k.Path), Known: treesource.Unknown}
		if old := l.tree.Get(k.Path); old != nil && k.Scope == readlist.JustData {
			wants[i].Known = old.Stat.Czxid
		}
	}
	found, err := treesource.Look(ctx, l.source, wants)
	if err != nil {
		return nil, err
	}
	sights := make([]*sight, len(taken))
	for i, k := range taken {
		sights[i] = &sight{Mark: k, Sight: found[i]}
		if read := found[i].Read; read != nil {
			sights[i].znode = &Znode{Path: k.Path, Data: read.Data, Stat: read.Stat}
			if l.opts.NoData {
				sights[i].znode.Data = nil
			}
		}
	}
	return sights, nil
}

// fail reports err, and pauses. It returns err if the client
// is closed.
func (l *Loop) fail(ctx context.Context, err error) error {
	if errors.Is(err, framework.ErrClosed) {
		return err
	}
	l.opts.Failed(err)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
