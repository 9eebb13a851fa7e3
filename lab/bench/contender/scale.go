package contender

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// connectAtOnce is how many sessions connect at the same time.
const connectAtOnce = 16

// cycle has one worker acquire and release locks of as many paths as the plan has workers, in turn.
func (s *stage) cycle(ctx context.Context, p plan) (result, error) {
	samples := make([]time.Duration, p.ops)
	before, start := mallocs(), time.Now()
	for i := range samples {
		begun := time.Now()
		l, err := s.sessions[0].Lock(p.kind, fmt.Sprintf("%s/%d", p.path, i%p.workers))
		if err != nil {
			return result{}, err
		}
		if err := l.Acquire(ctx); err != nil {
			return result{}, err
		}
		if err := l.Release(ctx); err != nil {
			return result{}, err
		}
		samples[i] = time.Since(begun)
	}
	return result{time.Since(start), p.ops, samples, mallocs() - before}, nil
}

// crowd is queue with a session for each waiter.
func (s *stage) crowd(ctx context.Context, p plan) (r result, err error) {
	sessions, err := s.connected(ctx, p.workers)
	defer func() { err = errors.Join(err, closeAll(sessions)) }()
	if err != nil {
		return result{}, err
	}
	return s.drain(ctx, p, func(i int) Session { return sessions[i] })
}

// connected makes n sessions. It returns those that were made, also with an error.
func (s *stage) connected(ctx context.Context, n int) ([]Session, error) {
	sessions := make([]Session, n)
	err := together(min(n, connectAtOnce), func(worker int) (err error) {
		for i := worker; i < n && err == nil; i += connectAtOnce {
			sessions[i], err = s.connect(ctx, i)
		}
		return err
	})
	return sessions, err
}

func closeAll(sessions []Session) error {
	return together(len(sessions), func(i int) error {
		if sessions[i] == nil {
			return nil
		}
		return sessions[i].Close()
	})
}
