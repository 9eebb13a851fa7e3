package zkproxy

import (
	"sync"

	"github.com/docent-go/docent/testing/fault"
)

// replies are the claims on the replies that one connection still waits for. All
// replies are kept, claimed or not: pings share one xid, and several may be under
// way. The zero value is ready to use.
type replies struct {
	mu    sync.Mutex
	byXid map[int32][]*fault.Injection // in the order of the requests
}

// expect adds the reply to request xid, with the claim on it, if any.
func (r *replies) expect(xid int32, injection *fault.Injection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byXid == nil {
		r.byXid = make(map[int32][]*fault.Injection)
	}
	r.byXid[xid] = append(r.byXid[xid], injection)
}

// take removes the first reply to a request xid and returns the claim on it.
func (r *replies) take(xid int32) *fault.Injection {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.byXid[xid]
	switch len(waiting) {
	case 0:
		return nil
	case 1:
		delete(r.byXid, xid)
	default:
		r.byXid[xid] = waiting[1:]
	}
	return waiting[0]
}

// abandon gives all claims back.
func (r *replies) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, waiting := range r.byXid {
		for _, injection := range waiting {
			injection.Cancel()
		}
	}
	r.byXid = nil
}
