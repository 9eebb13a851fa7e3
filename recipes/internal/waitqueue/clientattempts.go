package waitqueue

import (
	"sync"

	"github.com/docent-go/docent/framework"
)

// clientAttempts are the attempts of one client that have a node and no grant, by the node's name,
// which is unique. If an attempt's predecessor is one of them, its grant shows what a listing would
// show: no other contender is left ahead.
//
// This is an optimisation: without it, an attempt would watch the node ahead of its predecessor,
// and list when that is deleted.
type clientAttempts struct {
	mu      sync.Mutex
	granted map[string]chan struct{} // closed at the grant; nil until the successor asks for it
}

type clientAttemptsKey struct{}

func clientAttemptsOf(c *framework.Client) *clientAttempts {
	return c.Shared(clientAttemptsKey{}, func() any {
		return &clientAttempts{granted: make(map[string]chan struct{})}
	}).(*clientAttempts)
}

func (as *clientAttempts) add(name string) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.granted[name] = nil
}

// remove removes the attempt. If it was granted, its successor is notified.
func (as *clientAttempts) remove(name string, granted bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if notify := as.granted[name]; granted && notify != nil {
		close(notify)
	}
	delete(as.granted, name)
}

// grantOf returns a channel that is closed when the attempt whose node has the name is granted; nil
// if this client has no such attempt.
func (as *clientAttempts) grantOf(name string) <-chan struct{} {
	as.mu.Lock()
	defer as.mu.Unlock()
	notify, ok := as.granted[name]
	if ok && notify == nil {
		notify = make(chan struct{})
		as.granted[name] = notify
	}
	return notify
}
