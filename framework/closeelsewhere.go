package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/session"
)

// detachedLimit is how long Close looks for a server that ends a session without a connection. The
// wire client takes about as long to end in that case.
const detachedLimit = time.Second

// closeElsewhere ends s, which Close has ended, at any server that can be reached in time. It does
// so only if s has no connection, because otherwise the wire ends s. It does not wait; Close does.
// The client's loop calls it.
func (c *core) closeElsewhere(s *session.Session) {
	if c.current() != s || s.WasServing() {
		return
	}
	c.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), detachedLimit)
		defer cancel()
		b := &sessionCloser{core: c, session: s}
		b.log(b.anywhere(ctx, c.currentServers().first()), false)
	})
}

// anywhere makes an attempt at each address of each server, all at once, because one that does not
// answer would take all the time. It returns nil once one attempt has succeeded, else all faults.
// An attempt may fail because the session has moved to the server of another attempt; the last of
// them still succeeds.
func (b *sessionCloser) anywhere(ctx context.Context, servers []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards following
	var closed bool
	var faults []error
	ends := func(t hosts.Target, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			closed = true
			cancel()
			return
		}
		faults = append(faults, fmt.Errorf("%v: %w", t, err))
	}
	var attempts sync.WaitGroup
	for _, server := range servers {
		attempts.Go(func() {
			t := hosts.Target{Server: server}
			targets, err := t.Resolved(ctx, b.core.cfg.resolve)
			if err != nil {
				ends(t, err)
			}
			for _, t := range targets {
				attempts.Go(func() { ends(t, b.attempt(ctx, t)) })
			}
		})
	}
	attempts.Wait()
	if closed {
		return nil
	}
	return errors.Join(faults...)
}
