package framework

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/zktel"
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
		for _, server := range hosts.Shuffled(c.currentServers().first()) {
			err := b.attempt(ctx, hosts.Target{Server: server})
			if err == nil || ctx.Err() != nil {
				b.log(err, false)
				return
			}
			c.log.Debug("cannot close the session at a server", zap.String(zktel.AttrServerAddress, server), zap.Error(err))
		}
	})
}
