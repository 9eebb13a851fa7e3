package framework

import (
	"context"
	"time"
)

// closeGrace is how long Close waits for running listeners.
const closeGrace = 5 * time.Second

// Close ends the session, so that its ephemeral znodes are deleted at once. If there is no
// connection, Close looks for a server that ends the session, for a second. If it finds none, the
// ensemble ends the session within the session timeout. If an earlier session was abandoned and is
// not closed yet, Close makes one more attempt to close it.
//
// Close returns when the client's goroutines and sockets are gone, which takes about a second at
// the most, and all listeners have returned. It does not wait longer than five seconds for a
// listener, nor for a connection, a dialer or another function of the user's. Operations in progress end with [ErrClosed]. The error names the guaranteed deletions
// that were not done and do not end with the session. Close may be called several times, also from
// a listener, and closes all views of the client.
func (c *Client) Close() error {
	core := c.core
	core.closing.Do(func() { core.closeErr = core.close() })             // later calls wait
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace) // the client's has ended
	defer cancel()
	// Each caller waits by itself, because Close does not wait for a listener that calls it.
	if err := core.listeners.Close(ctx); err != nil {
		core.log.Warn("a state listener is still at work after the client was closed", zapError(err))
	}
	_ = core.cfg.lines.Flush(ctx) // if the log's sink blocks, there is nowhere to report it
	return core.closeErr
}

func (c *core) close() error {
	c.mu.Lock()
	c.refusing = true
	running := c.running
	c.mu.Unlock()
	c.cancel(ErrClosed)
	if running != nil {
		running.End(ErrClosed) // its loop does that, too, unless a function of the user's blocks it
	}
	c.awaitGoroutines()
	c.mu.Lock()
	last := c.session
	c.mu.Unlock()
	c.transition(Closed, last, nil)
	c.telemetry.Close()
	return c.deletes.close()
}

// awaitGoroutines waits for the client's goroutines, but not for ever: a connection or a function of
// the user's may block one of them.
func (c *core) awaitGoroutines() {
	done := make(chan struct{})
	go func() { // ends with them
		c.wg.Wait()
		close(done)
	}()
	grace := time.NewTimer(workGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		c.log.Warn("a goroutine is still at work after the client was closed: a connection or a function of the user's blocks it")
	}
}

// workGrace is how long Close waits for the client's goroutines: as long as the end of a session waits
// for a user's functions, and two seconds for the wire client.
const workGrace = closeGrace + 2*time.Second

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

// enter makes Close wait until the caller of enter calls wg.Done. If Close has begun, it returns
// false.
func (c *core) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusing {
		return false
	}
	c.wg.Add(1)
	return true
}
