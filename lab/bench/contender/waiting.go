package contender

import (
	"context"
	"fmt"
	"time"
)

// handoff has two sessions take turns. Only the time between a release and the
// grant that follows it counts.
func (s *stage) handoff(ctx context.Context, p Plan) (Answer, error) {
	var sides [2]*side
	for i := range sides {
		l, err := s.sessions[i].Lock(p.Kind, p.Path)
		if err != nil {
			return Answer{}, err
		}
		sides[i] = newSide(l)
		defer sides[i].end()
	}
	if _, err := sides[0].acquire(ctx)(); err != nil {
		return Answer{}, err
	}
	r := Answer{Ops: p.Ops}
	before := mallocs()
	for i := range p.Ops {
		holder, waiter := sides[i%2], sides[(i+1)%2]
		granted := waiter.acquire(ctx)
		if err := pause(ctx, p.Settle); err != nil {
			return Answer{}, err
		}
		released := holder.release(ctx)
		grant, err := granted()
		if err != nil {
			return Answer{}, err
		}
		release, err := released()
		if err != nil {
			return Answer{}, err
		}
		r.Samples = append(r.Samples, grant.end.Sub(release.start))
		r.Elapsed += grant.end.Sub(release.start)
	}
	r.Mallocs = mallocs() - before
	_, err := sides[p.Ops%2].release(ctx)()
	return r, err
}

// pause lets what was begun come to rest: a waiter's znode and watches.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A side is a lock and its owner, a goroutine that uses it.
type side struct {
	lock Lock
	work chan func()
}

// A span is when something began and ended.
type span struct{ start, end time.Time }

// newSide starts the goroutine, which end ends.
func newSide(l Lock) *side {
	s := &side{l, make(chan func())}
	go func() {
		for fn := range s.work {
			fn()
		}
	}()
	return s
}

func (s *side) end() { close(s.work) }

// acquire begins to acquire; what it returns waits for it.
func (s *side) acquire(ctx context.Context) func() (span, error) { return s.do(ctx, s.lock.Acquire) }

// release begins to release; what it returns waits for it.
func (s *side) release(ctx context.Context) func() (span, error) { return s.do(ctx, s.lock.Release) }

func (s *side) do(ctx context.Context, fn func(context.Context) error) func() (span, error) {
	var (
		took span
		err  error
	)
	done := make(chan struct{})
	s.work <- func() {
		defer close(done)
		took.start = time.Now()
		err = fn(ctx)
		took.end = time.Now()
	}
	return func() (span, error) {
		<-done
		return took, err
	}
}

// queue lets the workers wait for one lock, and measures how they drain.
func (s *stage) queue(ctx context.Context, p Plan) (Answer, error) {
	holder, err := s.holding(ctx, p)
	if err != nil {
		return Answer{}, err
	}
	locks := make([]Lock, p.Workers)
	for i := range locks {
		if locks[i], err = s.sessions[0].Lock(p.Kind, p.Path); err != nil {
			return Answer{}, err
		}
	}
	moments := make([]time.Time, p.Workers)
	before := mallocs()
	drained := make(chan error, 1)
	go func() {
		drained <- together(p.Workers, func(i int) error {
			if err := locks[i].Acquire(ctx); err != nil {
				return err
			}
			moments[i] = time.Now()
			return locks[i].Release(ctx)
		})
	}()
	if err := s.gate(); err != nil {
		return Answer{}, err
	}
	start := time.Now()
	if err := holder.Release(ctx); err != nil {
		return Answer{}, err
	}
	err = <-drained
	elapsed := time.Since(start)
	return Answer{Ops: p.Workers, Elapsed: elapsed, Samples: sinceLast(start, moments), Mallocs: mallocs() - before}, err
}

// hold has one worker hold many locks.
func (s *stage) hold(ctx context.Context, p Plan) (Answer, error) {
	locks := make([]Lock, p.Workers)
	samples := make([]time.Duration, p.Workers)
	a, err := measured(p.Workers, samples, func() (err error) {
		for i := range locks {
			begun := time.Now()
			if locks[i], err = s.sessions[0].Lock(p.Kind, fmt.Sprintf("%s/%d", p.Path, i)); err != nil {
				return err
			}
			if err := locks[i].Acquire(ctx); err != nil {
				return err
			}
			samples[i] = time.Since(begun)
		}
		return nil
	})
	if err == nil {
		err = s.gate()
	}
	for _, l := range locks {
		if err == nil {
			err = l.Release(ctx)
		}
	}
	return a, err
}
