package waitqueue

import (
	"sync"

	"github.com/docent-go/docent/framework"
)

// clientAttempts are the attempts of one client that have a node and no grant, by the node's name,
// which is unique. An attempt behind another one of its client learns from that one's grant what a
// listing would show: no contender is left ahead but its predecessor.
//
// This is an optimisation: without it, an attempt would watch the node ahead of its predecessor,
// and list when that is deleted.
type clientAttempts struct {
	mu  sync.Mutex // guards all, and granted of each attempt
	all map[string]*Attempt
}

type clientAttemptsKey struct{}

func clientAttemptsOf(c *framework.Client) *clientAttempts {
	return c.Shared(clientAttemptsKey{}, func() any {
		return &clientAttempts{all: make(map[string]*Attempt)}
	}).(*clientAttempts)
}

func (as *clientAttempts) add(a *Attempt) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.all[a.self.Name] = a
}

// remove removes the attempt, and notifies its successor if it was granted.
func (as *clientAttempts) remove(a *Attempt, granted bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	delete(as.all, a.self.Name)
	if granted && a.granted != nil {
		close(a.granted)
	}
	a.granted = nil
}

// granted returns a channel that is closed when the attempt whose node has the name is granted; nil
// if this client has no such attempt.
func (as *clientAttempts) granted(name string) <-chan struct{} {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.all[name]
	if a == nil {
		return nil
	}
	if a.granted == nil {
		a.granted = make(chan struct{})
	}
	return a.granted
}
