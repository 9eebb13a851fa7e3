package treecopy

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
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
	if err := l.pace(ctx); err != nil {
		return nil //nolint:nilerr // next returns why
	}
	taken, began := l.admitted(l.marks.Take(l.batch)), time.Now()
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
		if l.opts.WantsByPath != nil && !l.wants(func() bool { return l.opts.WantsByPath(k.Path) }) {
			wants[i].Data = func(stat *framework.Stat) bool {
				return l.wants(func() bool { return l.opts.WantsByStat(k.Path, *stat) })
			}
		}
	}
	found, err := treesource.Look(ctx, l.source, wants)
	if err != nil {
		return nil, err
	}
	l.spend(found)
	sights := make([]*sight, len(taken))
	for i, k := range taken {
		sights[i] = &sight{Mark: k, Sight: found[i]}
		if read := found[i].Read; read != nil {
			sights[i].znode = &Znode{Path: k.Path, Data: read.Data, Stat: read.Stat}
			if l.opts.NoData || wants[i].Data != nil && !wants[i].Data(&read.Stat) {
				sights[i].znode.Data = nil
			}
		}
	}
	return sights, nil
}

// wants calls a function of the user. If it panics or ends its goroutine, it does not want.
func (l *Loop) wants(fn func() bool) (wants bool) {
	usercall.GuardExit(l.opts.Log, "WithDataOf", func() { wants = fn() })
	return wants
}

// pace waits until the rate allows another batch. It returns an error if ctx ends first.
func (l *Loop) pace(ctx context.Context) error {
	if l.opts.Rate == 0 {
		return nil
	}
	l.batch = min(l.batch, max(minBatch, l.opts.Rate/8)) // so that no burst is longer than an eighth of a second
	timer := time.NewTimer(time.Until(l.free))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spend counts the requests of a batch for the rate.
func (l *Loop) spend(found []treesource.Sight) {
	if l.opts.Rate == 0 {
		return
	}
	requests := len(found)
	for i := range found {
		if found[i].Listed && found[i].Read != nil && found[i].Read.Data != nil {
			requests++
		}
	}
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(requests) * time.Second / time.Duration(l.opts.Rate))
}

// admitted returns what was taken without new znodes that the limit leaves out.
func (l *Loop) admitted(taken []*readlist.Mark) []*readlist.Mark {
	if l.opts.Limit == 0 {
		return taken
	}
	room := l.opts.Limit - l.tree.Len()
	return slices.DeleteFunc(taken, func(k *readlist.Mark) bool {
		if l.tree.Get(k.Path) != nil || k.Path == l.opts.Extent.Root {
			return false
		}
		if room--; room >= 0 {
			return false
		}
		if dir, _ := framework.SplitPath(k.Path); l.tree.Get(dir) != nil { // else it is below what is left out
			l.leaveOut(k.Path)
		}
		return true
	})
}

// leaveOut notes a znode that the limit leaves out. No more are noted than the copy has: of others the
// number alone is known.
func (l *Loop) leaveOut(path string) {
	dir, name := framework.SplitPath(path)
	_, known := l.leftOut[dir][name]
	switch {
	case known:
		return
	case l.numberOut >= l.opts.Limit:
		l.moreOut++
		return
	case l.leftOut[dir] == nil:
		l.leftOut[dir] = make(map[string]struct{})
	}
	l.leftOut[dir][name] = struct{}{}
	l.numberOut++
	if !l.source.Follows(path) { // its deletion may have come before, and no watch would notify of it
		l.marks.Add(dir, readlist.WithNames)
	}
}

// takeBack forgets that the znode was left out.
func (l *Loop) takeBack(dir, name string) {
	if _, known := l.leftOut[dir][name]; !known {
		return
	}
	delete(l.leftOut[dir], name)
	if l.numberOut--; len(l.leftOut[dir]) == 0 {
		delete(l.leftOut, dir)
	}
}

// readmit marks znodes that were left out, if there is room by now.
func (l *Loop) readmit() {
	if l.lost || l.numberOut == 0 || !l.marks.Empty() {
		return
	}
	room := l.opts.Limit - l.tree.Len()
	for dir, names := range l.leftOut {
		for name := range names {
			if room--; room < 0 {
				return
			}
			l.takeBack(dir, name)
			l.marks.Add(framework.JoinPath(dir, name), readlist.WithAll)
		}
	}
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
