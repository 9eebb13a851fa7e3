package waitqueue

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
)

// UntilSlowLook returns how long a waiter relies on its watches, before it looks whether they have
// missed something: one to two session timeouts. A server may drop an event, and the watch with
// it, if the session may not read the znode at that moment (ZooKeeper 3.8.4, 3.9.2).
func UntilSlowLook(c *framework.Client) time.Duration {
	timeout := c.Session().Timeout
	if timeout <= 0 {
		timeout = framework.DefaultSessionTimeout // there is no session at the moment
	}
	return timeout + rand.N(timeout)
}

// slowLook reads the own node and the one ahead, and returns nil if both exist. If one may not be
// read any more, the error names it, because the event of its deletion would be lost.
func (w *waiting) slowLook(ctx context.Context) error {
	for _, name := range []string{w.own.name, w.ahead.name} {
		path := framework.JoinPath(w.attempt.queue.Dir, name)
		read, err := w.attempt.client.Watch(ctx, path, framework.WatchData)
		switch {
		case ctxerr.Is(err, framework.ErrNoNode):
			return errStale
		case err != nil:
			return err
		}
		read.Close()
	}
	return nil
}
