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

func (l *requestLog) all() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

func (l *requestLog) count(ops []fault.Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.requests {
		if slices.Contains(ops, r.Op) {
			n++
		}
	}
	return n
}

func (l *requestLog) reset() {
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
