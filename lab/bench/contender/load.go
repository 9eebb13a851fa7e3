package contender

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// reentryBatch is how many re-entries one sample is the mean of: a single one is
// too short for a clock.
const reentryBatch = 1000

// A plan is what one run has to do.
type plan struct {
	load, kind, path string
	workers, ops     int
	settle           time.Duration
}

// A result is what came of it.
type result struct {
	elapsed time.Duration
	ops     int
	samples []time.Duration
	mallocs int64 // meanwhile, of the whole process
}

// A stage is what loads have to play on.
type stage struct {
	sessions [2]Session
	connect  func(ctx context.Context, i int) (Session, error) // makes one more session
	gate     func(ctx context.Context) error                   // says that a run waits, and returns when it may go on
}

func (s *stage) play(ctx context.Context, p plan) (result, error) {
	loads := map[string]func(context.Context, plan) (result, error){
		"sequence": s.workers, "paths": s.workers, "shared": s.workers, "mix": s.workers,
		"reentry": s.reentry, "handoff": s.handoff, "queue": s.queue, "hold": s.hold, "refused": s.refused, "pair": s.pair,
		"fill": s.fill, "change": s.change, "cached": s.cached,
	}
	load := loads[p.load]
	if load == nil {
		return result{}, fmt.Errorf("no such load: %s", p.load)
	}
	return load(ctx, p)
}

// workers has each worker acquire and release, until all operations are made.
func (s *stage) workers(ctx context.Context, p plan) (result, error) {
	locks := make([]Lock, p.workers)
	for i := range locks {
		var err error
		switch p.load {
		case "paths":
			locks[i], err = s.sessions[0].Lock(p.kind, fmt.Sprintf("%s/%d", p.path, i))
		case "mix":
			locks[i], err = newMixed(s.sessions[0], p.path, i)
		default:
			locks[i], err = s.sessions[0].Lock(p.kind, p.path)
		}
		if err != nil {
			return result{}, err
		}
	}
	samples := make([]time.Duration, p.ops)
	var next atomic.Int64
	before, start := mallocs(), time.Now()
	err := together(p.workers, func(worker int) error {
		l := locks[worker]
		for {
			i := next.Add(1) - 1
			if i >= int64(p.ops) {
				return nil
			}
			begun := time.Now()
			if err := l.Acquire(ctx); err != nil {
				return err
			}
			if err := l.Release(ctx); err != nil {
				return err
			}
			samples[i] = time.Since(begun)
		}
	})
	elapsed := time.Since(start)
	return result{elapsed, p.ops, samples, mallocs() - before}, err
}

// together runs fn for each number on a goroutine of its own, and returns one of
// the errors.
func together(n int, fn func(i int) error) error {
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() { errs <- fn(i) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A mixed lock writes in each tenth operation; the workers don't write in step.
type mixed struct {
	sides [2]Lock // read, write
	count int
}

func newMixed(s Session, path string, worker int) (Lock, error) {
	read, err := s.Lock("read", path)
	if err != nil {
		return nil, err
	}
	write, err := s.Lock("write", path)
	return &mixed{sides: [2]Lock{read, write}, count: worker}, err
}

func (m *mixed) side() Lock {
	if m.count%10 == 0 {
		return m.sides[1]
	}
	return m.sides[0]
}

func (m *mixed) Acquire(ctx context.Context) error { return m.side().Acquire(ctx) }

func (m *mixed) Release(ctx context.Context) error {
	err := m.side().Release(ctx)
	m.count++
	return err
}

func (m *mixed) Refused(context.Context) error { return errNotOffered }

func (s *stage) reentry(ctx context.Context, p plan) (result, error) {
	l, err := s.sessions[0].Lock(p.kind, p.path)
	if err != nil {
		return result{}, err
	}
	if err := l.Acquire(ctx); err != nil {
		return result{}, err
	}
	samples := make([]time.Duration, max(1, p.ops/reentryBatch))
	before, start := mallocs(), time.Now()
	for i := range samples {
		begun := time.Now()
		for range reentryBatch {
			if err := l.Acquire(ctx); err != nil {
				return result{}, err
			}
			if err := l.Release(ctx); err != nil {
				return result{}, err
			}
		}
		samples[i] = time.Since(begun) / reentryBatch
	}
	elapsed := time.Since(start)
	r := result{elapsed, len(samples) * reentryBatch, samples, mallocs() - before}
	return r, l.Release(ctx)
}

func (s *stage) refused(ctx context.Context, p plan) (result, error) {
	holder, err := s.sessions[0].Lock(p.kind, p.path)
	if err != nil {
		return result{}, err
	}
	other, err := s.sessions[1].Lock(p.kind, p.path)
	if err != nil {
		return result{}, err
	}
	if err := holder.Acquire(ctx); err != nil {
		return result{}, err
	}
	samples := make([]time.Duration, p.ops)
	before, start := mallocs(), time.Now()
	for i := range samples {
		begun := time.Now()
		if err := other.Refused(ctx); err != nil {
			return result{}, err
		}
		samples[i] = time.Since(begun)
	}
	elapsed := time.Since(start)
	r := result{elapsed, p.ops, samples, mallocs() - before}
	return r, holder.Release(ctx)
}

// pairLimit is how long a session waits in the load "pair".
const pairLimit = time.Second

// pair has both sessions acquire at the same time. A session that can't withdraws after a second.
func (s *stage) pair(ctx context.Context, p plan) (result, error) {
	samples := make([]time.Duration, p.ops)
	before, start := mallocs(), time.Now()
	for i := range samples {
		begun := time.Now()
		err := together(len(s.sessions), func(side int) error {
			l, err := s.sessions[side].Lock(p.kind, fmt.Sprintf("%s/%d", p.path, i))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, pairLimit)
			defer cancel()
			if err := l.Acquire(ctx); err != nil {
				return err
			}
			return l.Release(ctx)
		})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return result{}, err
		}
		samples[i] = time.Since(begun)
	}
	return result{time.Since(start), p.ops, samples, mallocs() - before}, nil
}

// sinceLast turns moments into the intervals between them, the first one from start.
func sinceLast(start time.Time, moments []time.Time) []time.Duration {
	slices.SortFunc(moments, time.Time.Compare)
	var intervals []time.Duration
	for _, m := range moments {
		intervals = append(intervals, m.Sub(start))
		start = m
	}
	return intervals
}
