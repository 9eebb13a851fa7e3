package hold

import (
	"sync"

	"github.com/docent-go/docent/framework"
)

// calls are the goroutines of one client that call users' functions. Client.Close waits for them as
// it does for a state listener, so not forever.
type calls struct {
	mu      sync.Mutex
	running sync.WaitGroup // added to under mu
	closed  bool           // Close waits: there are no further calls
	listens sync.Once      // registers await
}

type callsKey struct{}

// callsOf returns the calls of c's client.
func callsOf(c *framework.Client) *calls {
	cs := c.Shared(callsKey{}, func() any { return new(calls) }).(*calls)
	cs.listens.Do(func() { c.OnState(cs.await) })
	return cs
}

// Go runs fn on a new goroutine. It reports false if the client is closing.
func (c *calls) Go(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(fn)
	}
	return !c.closed
}

// await is a state listener that waits at the client's end.
func (c *calls) await(change framework.StateChange) {
	if change.To != framework.Closed {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
