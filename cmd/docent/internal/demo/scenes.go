package demo

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
)

// When each scene happens, from the start.
const (
	revocationAt = 6 * time.Second
	lossAt       = 12 * time.Second
	deadlockAt   = 2 * time.Second
)

// stuck is a mutex whose holder has stopped. A waiter withdraws from time to time.
func (s *stage) stuck() {
	s.work("stopped", func(ctx context.Context, c *framework.Client) error {
		l, err := mutex(root+"/stuck")(ctx, c)
		if err != nil {
			return err
		}
		<-ctx.Done()
		return l.Release(context.WithoutCancel(ctx))
	})
	s.work("patient", func(ctx context.Context, c *framework.Client) error {
		for pause(ctx, time.Second, time.Second) {
			waiting, end := context.WithTimeout(ctx, time.Minute)
			_, err := mutex(root+"/stuck")(waiting, c)
			end()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
		}
		return nil
	})
}

// revocation has a holder that releases when another worker asks it to.
func (s *stage) revocation() {
	path := root + "/maintenance"
	s.work("vacuum", func(ctx context.Context, c *framework.Client) error {
		asked := make(chan struct{}, 1)
		m, err := lock.NewMutex(c, path, recipes.WithRevocation(func(*lock.Lease) { asked <- struct{}{} }))
		if err != nil {
			return err
		}
		for ctx.Err() == nil {
			l, err := m.Lock(ctx)
			if err != nil {
				return err
			}
			select {
			case <-asked:
				s.say("vacuum was asked to release %s, and does", path)
			case <-l.Lost():
			case <-ctx.Done():
			}
			if err := l.Release(context.WithoutCancel(ctx)); err != nil {
				return err
			}
			pause(ctx, 2*time.Second, 3*time.Second)
		}
		return nil
	})
	s.work("operator", func(ctx context.Context, c *framework.Client) error {
		m, err := lock.NewMutex(c, path)
		if err != nil || !pause(ctx, revocationAt, revocationAt) {
			return err
		}
		holders, err := m.Participants(ctx)
		if err != nil || len(holders) == 0 {
			return err
		}
		s.say("operator asks the holder of %s to release", path)
		if err := lock.Revoke(ctx, c, holders[0].Path); err != nil {
			return err
		}
		return turns(mutex(path), 3*time.Second, time.Second)(ctx, c)
	})
}

// loss has a holder whose session the server ends.
func (s *stage) loss() {
	s.work("unlucky", func(ctx context.Context, c *framework.Client) error {
		for ctx.Err() == nil {
			l, err := mutex(root+"/backup")(ctx, c)
			if err != nil {
				return err
			}
			if !pause(ctx, lossAt, 2*lossAt) {
				return l.Release(context.WithoutCancel(ctx))
			}
			s.say("the server ends the session of unlucky, which holds %s/backup", root)
			if err := s.server.Expire(c.Session().ID); err != nil {
				return err
			}
			<-l.Lost()
			s.say("unlucky has lost its lease: %v", l.Err())
		}
		return nil
	})
	s.work("standby", turns(mutex(root+"/backup"), 8*time.Second, 5*time.Second))
}

// deadlock has two workers that lock two mutexes in opposite orders, and a third behind them.
func (s *stage) deadlock() {
	a, b := root+"/accounts/alice", root+"/accounts/bob"
	first := make(chan struct{}, 2) // of both: each has its first mutex
	for name, order := range map[string][2]string{"transfer-1": {a, b}, "transfer-2": {b, a}} {
		s.work(name, func(ctx context.Context, c *framework.Client) error {
			if !pause(ctx, deadlockAt, deadlockAt) {
				return nil
			}
			held, err := mutex(order[0])(ctx, c)
			if err != nil {
				return err
			}
			first <- struct{}{}
			for len(first) < cap(first) && pause(ctx, time.Second/10, time.Second/10) {
			}
			s.say("%s holds %s and waits for %s", name, order[0], order[1])
			_, err = mutex(order[1])(ctx, c)
			return errors.Join(err, held.Release(context.WithoutCancel(ctx)))
		})
	}
	s.work("statement", func(ctx context.Context, c *framework.Client) error {
		if !pause(ctx, 2*deadlockAt, 2*deadlockAt) {
			return nil
		}
		_, err := mutex(a)(ctx, c)
		return err
	})
}
