package contender

import (
	"context"
	"fmt"
	"time"
)

// handoff has two sessions take turns. Only the time between a release and the
// grant that follows it counts.
func (s *stage) handoff(ctx context.Context, p plan) (result, error) {
	var sides [2]*side
	for i := range sides {
		l, err := s.sessions[i].Lock(p.kind, p.path)
		if err != nil {
			return result{}, err
		}
		sides[i] = newSide(l)
		defer sides[i].end()
	}
	if _, err := sides[0].acquire(ctx)(); err != nil {
		return result{}, err
	}
	r := result{ops: p.ops}
	before := mallocs()
	for i := range p.ops {
		holder, waiter := sides[i%2], sides[(i+1)%2]
		granted := waiter.acquire(ctx)
		if err := pause(ctx, p.settle); err != nil {
			return result{}, err
		}
		released := holder.release(ctx)
		grant, err := granted()
		if err != nil {
			return result{}, err
		}
		release, err := released()
		if err != nil {
			return result{}, err
		}
		r.samples = append(r.samples, grant.end.Sub(release.start))
		r.elapsed += grant.end.Sub(release.start)
	}
	r.mallocs = mallocs() - before
	_, err := sides[p.ops%2].release(ctx)()
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
func (s *stage) queue(ctx context.Context, p plan) (result, error) {
	return s.drain(ctx, p, func(int) Session { return s.sessions[0] })
}

// drain lets a worker of each session wait for one lock, and measures how they drain.
func (s *stage) drain(ctx context.Context, p plan, session func(i int) Session) (result, error) {
	holder, err := s.sessions[0].Lock(p.kind, p.path)
	if err != nil {
		return result{}, err
	}
	if err := holder.Acquire(ctx); err != nil {
		return result{}, err
	}
	locks := make([]Lock, p.workers)
	for i := range locks {
		if locks[i], err = session(i).Lock(p.kind, p.path); err != nil {
			return result{}, err
		}
	}
	moments := make([]time.Time, p.workers)
	before := mallocs()
	drained := make(chan error, 1)
	go func() {
		drained <- together(p.workers, func(i int) error {
			if err := locks[i].Acquire(ctx); err != nil {
				return err
			}
			moments[i] = time.Now()
			return locks[i].Release(ctx)
		})
	}()
	if err := s.gate(ctx); err != nil {
		return result{}, err
	}
	start := time.Now()
	if err := holder.Release(ctx); err != nil {
		return result{}, err
	}
	err = <-drained
	elapsed := time.Since(start)
	return result{elapsed, p.workers, sinceLast(start, moments), mallocs() - before}, err
}

// hold has one worker hold many locks.
func (s *stage) hold(ctx context.Context, p plan) (result, error) {
	locks := make([]Lock, p.workers)
	samples := make([]time.Duration, p.workers)
	before, start := mallocs(), time.Now()
	for i := range locks {
		begun := time.Now()
		var err error
		if locks[i], err = s.sessions[0].Lock(p.kind, fmt.Sprintf("%s/%d", p.path, i)); err != nil {
			return result{}, err
		}
		if err := locks[i].Acquire(ctx); err != nil {
			return result{}, err
		}
		samples[i] = time.Since(begun)
	}
	elapsed := time.Since(start)
	if err := s.gate(ctx); err != nil {
		return result{}, err
	}
	for _, l := range locks {
		if err := l.Release(ctx); err != nil {
			return result{}, err
		}
	}
	return result{elapsed, p.workers, samples, mallocs() - before}, nil
}
