package zkserver

import (
	"sync"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

// An outgoing is a frame on its way to the client.
type outgoing struct {
	frame     []byte
	injection *fault.Injection // its fault, nil for none
	at        time.Time        // when it was queued
	last      bool             // close the connection here
}

// An outbox is the queue of what a connection has to write. It has no bound: a
// server that waited for a slow client would keep others waiting.
type outbox struct {
	ready chan struct{} // has one element if there may be frames

	mu     sync.Mutex
	queue  []outgoing
	closed bool
}

func newOutbox() *outbox { return &outbox{ready: make(chan struct{}, 1)} }

// push queues a frame. Once the outbox is closed it is lost.
func (o *outbox) push(item outgoing) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		item.injection.Cancel()
		return
	}
	o.queue = append(o.queue, item)
	o.mu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take returns everything that has been pushed since.
func (o *outbox) take() []outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.queue
	o.queue = nil
	return queue
}

// close loses what is queued, and what will be.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	queue := o.queue
	o.queue = nil
	o.mu.Unlock()
	for _, item := range queue {
		item.injection.Cancel()
	}
}
