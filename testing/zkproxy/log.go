package zkproxy

import (
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

// A requestLog keeps requests in the order in which they came. The zero value is
// ready to use.
type requestLog struct {
	mu       sync.Mutex
	requests []Request
}

// add takes the time itself, so that the log is in the order of its times.
func (l *requestLog) add(f fault.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, Request{Frame: f, At: time.Now()})
}

// Requests returns all requests and handshakes received from clients since the
// start or the last ResetRequests, in the order of their arrival. It includes
// pings, requests that a rule has kept from the server, and those that the
// server refused.
func (l *requestLog) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// Count returns the number of requests in [Proxy.Requests] that are one of ops.
func (l *requestLog) Count(ops ...fault.Op) int {
	n := 0
	for _, r := range l.Requests() {
		if slices.Contains(ops, r.Op) {
			n++
		}
	}
	return n
}

// ResetRequests empties the log of requests. The log grows without bound, by some
// hundred bytes a request.
func (l *requestLog) ResetRequests() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = nil
}

// A Request is a request or a handshake that a client has sent through the proxy. Its
// Session is 0 as long as the server has not answered the handshake of a new one.
type Request struct {
	fault.Frame
	// At is when the proxy had received it.
	At time.Time
}
