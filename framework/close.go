package framework

import (
	"context"
	"time"
)

// closeGrace is how long Close waits for listeners that are still at work.
const closeGrace = 5 * time.Second

// Close ends the session, so that its ephemeral znodes go at once. If there is no
// connection, Close looks for a server that ends the session, for a second; if it finds
// none, the ensemble ends the session within the session timeout. An earlier
// session that was given up, and is not closed yet, gets one more attempt. It
// returns when the client's goroutines and sockets are gone, which takes about
// a second at the most, and the listeners have been told; one that is still at work
// after five seconds is left to itself. Operations in progress end with
// [ErrClosed]. The error names the guaranteed deletions that were not done and do not
// go with the session. It may be called several times, also from a listener, and closes all
// views of the client.
func (c *Client) Close() error {
	core := c.core
	core.closing.Do(func() { core.closeErr = core.close() })             // who comes second waits for the first
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace) // the client's own context has ended
	defer cancel()
	// Each caller waits by itself: one that is a listener is not waited for.
	if err := core.listeners.Close(ctx); err != nil {
		core.log.Warn("a state listener is still at work after the client was closed", zapError(err))
	}
	return core.closeErr
}

func (c *core) close() error {
	c.mu.Lock()
	c.refusing = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	c.wg.Wait()
	c.mu.Lock()
	last := c.session
	c.mu.Unlock()
	c.transition(Closed, last, nil)
	c.telemetry.Close()
	return c.deletes.close()
}

// spawn runs fn on a goroutine that Close waits for, unless Close has begun.
func (c *core) spawn(fn func()) bool {
	if !c.enter() {
		return false
	}
	go func() {
		defer c.wg.Done()
		fn()
	}()
	return true
}

// enter makes Close wait until who calls it calls wg.Done, unless Close has begun.
func (c *core) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusing {
		return false
	}
	c.wg.Add(1)
	return true
}
