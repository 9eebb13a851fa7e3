package locktest

import (
	"context"
	"errors"
	"runtime"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

// doCases are those of lock.Do.
func doCases() []contractCase {
	return []contractCase{
		{sentence: "Do calls fn while it holds the lock, releases it, and returns fn's error", check: (*fixture).doHolds},
		{sentence: "Do releases the lock when fn panics or ends its goroutine, and when ctx ends in fn", check: (*fixture).doReleases},
		{sentence: "If the lock can't be had before ctx ends, Do does not call fn", check: (*fixture).doInVain},
		{sentence: "Do's fn has a context that ends with the loss, which Do's error tells", check: (*fixture).doLoses},
	}
}

// held reports whether the lock is held, also by a holder that the oracle doesn't know.
func (s *fixture) held() bool {
	s.Helper()
	lease, err := s.rival(s.env.Client(s)).TryLock(s.Context())
	if err == nil {
		s.oracle.Enter(lease)
		s.mustRelease(lease)
		return false
	}
	if !errors.Is(err, lock.ErrHeld) {
		s.Errorf("TryLock by another client: %v, want none or ErrHeld", err)
	}
	return true
}

func (s *fixture) doHolds() {
	c := s.env.Client(s)
	wrong := errors.New("wrong")
	err := lock.Do(s.Context(), s.locker(c), func(context.Context, *lock.Lease) error {
		if !s.held() {
			s.Error("fn was called and the lock is not held")
		}
		return wrong
	})
	if err != wrong { //nolint:errorlint // identity is the promise: a release that succeeds adds nothing
		s.Errorf("Do: %#v, want fn's error itself", err)
	}
	if s.held() {
		s.Error("Do returned and the lock is held")
	}
	s.mustBeQuiet(c)
}

func (s *fixture) doReleases() {
	c := s.env.Client(s)
	for how, fail := range map[string]func(){"panic": func() { panic("panic") }, "Goexit": runtime.Goexit} {
		ended := make(chan any, 1)
		go func() {
			defer func() { ended <- recover() }()
			_ = lock.Do(s.Context(), s.locker(c), func(context.Context, *lock.Lease) error { fail(); return nil })
			s.Errorf("Do has returned after a %s", how)
		}()
		if v := must.Receive(s, ended, "the end of Do"); v == nil && how == "panic" {
			s.Error("fn's panic did not come through")
		}
		if s.held() {
			s.Errorf("the lock is held after a %s", how)
		}
	}
	ctx, cancel := context.WithCancel(s.Context())
	if err := lock.Do(ctx, s.locker(c), func(context.Context, *lock.Lease) error { cancel(); return nil }); err != nil {
		s.Errorf("Do whose ctx ended in fn: %v, want nil: the release has a context of its own", err)
	}
	if s.held() {
		s.Error("the lock is held after ctx ended in fn")
	}
	s.mustBeQuiet(c)
}

func (s *fixture) doInVain() {
	vacate := s.occupy()
	c := s.env.Client(s)
	ctx, cancel := context.WithTimeout(s.Context(), brief)
	defer cancel()
	called := false
	err := within(s, "Do", func() error {
		return lock.Do(ctx, s.locker(c), func(context.Context, *lock.Lease) error { called = true; return nil })
	})
	if !errors.Is(err, context.DeadlineExceeded) || called {
		s.Errorf("Do: %v, called %v; want context.DeadlineExceeded, and fn not called", err, called)
	}
	vacate()
	s.mustBeQuiet(c)
}

func (s *fixture) doLoses() {
	route := s.env.Route(s)
	c := route.Client(s)
	err := lock.Do(s.Context(), s.locker(c), func(ctx context.Context, _ *lock.Lease) error {
		route.Expire(s)
		must.Receive(s, ctx.Done(), "the end of fn's context")
		if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrLost) {
			s.Errorf("cause %v, want ErrLost", cause)
		}
		return nil
	})
	if !errors.Is(err, lock.ErrLost) {
		s.Errorf("Do: %v, want ErrLost though fn returned nil", err)
	}
	s.mustBeFree()
	s.mustBeQuiet(c)
}
