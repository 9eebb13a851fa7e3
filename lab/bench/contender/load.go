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

// A Plan is what one run has to do: see the command "run".
type Plan struct {
	Load, Kind, Path string
	Workers, Ops     int
	Settle           time.Duration
}

// String returns the command.
func (p Plan) String() string {
	return fmt.Sprintf("run %s %s %s %d %d %d", p.Load, p.Kind, p.Path, p.Workers, p.Ops, p.Settle.Milliseconds())
}

// A stage is what loads have to play on.
type stage struct {
	sessions [2]Session
	gate     func() error // says that a run waits, and returns when it may go on
}

func (s *stage) play(ctx context.Context, p Plan) (Answer, error) {
	loads := map[string]func(context.Context, Plan) (Answer, error){
		"sequence": s.workers, "paths": s.workers, "shared": s.workers, "mix": s.workers,
		"reentry": s.reentry, "handoff": s.handoff, "queue": s.queue, "hold": s.hold, "refused": s.refused, "pair": s.pair,
		"fill": s.fill, "change": s.change, "cached": s.cached,
	}
	load := loads[p.Load]
	if load == nil {
		return Answer{}, fmt.Errorf("no such load: %s", p.Load)
	}
	return load(ctx, p)
}

// measured does the work that counts. Its samples are complete when it returns.
func measured(ops int, samples []time.Duration, work func() error) (Answer, error) {
	before, start := mallocs(), time.Now()
	err := work()
	return Answer{Ops: ops, Elapsed: time.Since(start), Samples: samples, Mallocs: mallocs() - before}, err
}

// workers has each worker acquire and release, until all operations are made.
func (s *stage) workers(ctx context.Context, p Plan) (Answer, error) {
	locks := make([]Lock, p.Workers)
	for i := range locks {
		var err error
		switch p.Load {
		case "paths":
			locks[i], err = s.sessions[0].Lock(p.Kind, fmt.Sprintf("%s/%d", p.Path, i))
		case "mix":
			locks[i], err = newMixed(s.sessions[0], p.Path, i)
		default:
			locks[i], err = s.sessions[0].Lock(p.Kind, p.Path)
		}
		if err != nil {
			return Answer{}, err
		}
	}
	samples := make([]time.Duration, p.Ops)
	var next atomic.Int64
	return measured(p.Ops, samples, func() error {
		return together(p.Workers, func(worker int) error {
			l := locks[worker]
			for {
				i := next.Add(1) - 1
				if i >= int64(p.Ops) {
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
	})
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

func (s *stage) reentry(ctx context.Context, p Plan) (Answer, error) {
	l, err := s.holding(ctx, p)
	if err != nil {
		return Answer{}, err
	}
	samples := make([]time.Duration, max(1, p.Ops/reentryBatch))
	a, err := measured(len(samples)*reentryBatch, samples, func() error {
		for i := range samples {
			begun := time.Now()
			for range reentryBatch {
				if err := l.Acquire(ctx); err != nil {
					return err
				}
				if err := l.Release(ctx); err != nil {
					return err
				}
			}
			samples[i] = time.Since(begun) / reentryBatch
		}
		return nil
	})
	return a, errors.Join(err, l.Release(ctx))
}

// holding returns a lock that the first session holds.
func (s *stage) holding(ctx context.Context, p Plan) (Lock, error) {
	l, err := s.sessions[0].Lock(p.Kind, p.Path)
	if err != nil {
		return nil, err
	}
	return l, l.Acquire(ctx)
}

func (s *stage) refused(ctx context.Context, p Plan) (Answer, error) {
	holder, err := s.holding(ctx, p)
	if err != nil {
		return Answer{}, err
	}
	second, err := s.sessions[1].Lock(p.Kind, p.Path)
	if err != nil {
		return Answer{}, err
	}
	other, ok := second.(Refuser)
	if !ok {
		return Answer{}, errKind(p.Kind)
	}
	samples := make([]time.Duration, p.Ops)
	a, err := measured(p.Ops, samples, func() error {
		for i := range samples {
			begun := time.Now()
			if err := other.Refused(ctx); err != nil {
				return err
			}
			samples[i] = time.Since(begun)
		}
		return nil
	})
	return a, errors.Join(err, holder.Release(ctx))
}

// pairLimit is how long a session waits in the load "pair".
const pairLimit = time.Second

// pair has both sessions acquire at the same time. A session that can't withdraws after a second.
func (s *stage) pair(ctx context.Context, p Plan) (Answer, error) {
	samples := make([]time.Duration, p.Ops)
	return measured(p.Ops, samples, func() error {
		for i := range samples {
			begun := time.Now()
			err := together(len(s.sessions), func(side int) error {
				l, err := s.sessions[side].Lock(p.Kind, fmt.Sprintf("%s/%d", p.Path, i))
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
				return err
			}
			samples[i] = time.Since(begun)
		}
		return nil
	})
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
