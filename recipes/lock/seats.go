package lock

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// seats let one attempt or lease of a client at a time have anything to do with
// an exclusive lock's znode. Within a process, contenders queue for their seat
// without any request; and a znode of the client's session that a lost reply
// leaves in doubt can only be the one's who sits.
type seats struct {
	mu     sync.Mutex
	byPath map[string]*seat // those that somebody has or waits for
}

// A seat is the right to contend for one path.
type seat struct {
	seats  *seats
	path   string                            // in the ensemble
	turn   chan struct{}                     // capacity 1: full while somebody sits
	sitter atomic.Pointer[telemetry.Acquire] // of who sat down last, for telemetry
	wanted int                               // how many sit or wait; guarded by seats.mu
}

type seatsKey struct{}

// seatsOf returns the seats of c's client.
func seatsOf(c *framework.Client) *seats {
	return c.Shared(seatsKey{}, func() any { return &seats{byPath: make(map[string]*seat)} }).(*seats)
}

// take waits for the path's seat, until ctx ends, or returns ErrHeld if it only
// tries. waited says whether somebody else had it.
func (s *seats) take(ctx context.Context, path string, try bool, seen *telemetry.Acquire) (_ *seat, waited bool, err error) {
	st := s.want(path)
	taken := false
	defer func() {
		if !taken { // also if a function of the user's panicked
			st.forget()
		}
	}()
	select {
	case st.turn <- struct{}{}:
		taken = true
		st.sitter.Store(seen)
		return st, false, nil
	default:
	}
	if try {
		return nil, false, ErrHeld
	}
	seen.Waits(telemetry.NoQueue)
	seen.BehindAcquire(st.sitter.Load())
	select {
	case st.turn <- struct{}{}:
		taken = true
		st.sitter.Store(seen)
		return st, true, nil
	case <-ctx.Done():
		return nil, false, ctxerr.Of(ctx)
	}
}

func (s *seats) want(path string) *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.byPath[path]
	if st == nil {
		st = &seat{seats: s, path: path, turn: make(chan struct{}, 1)}
		s.byPath[path] = st
	}
	st.wanted++
	return st
}

// leave gives the seat to who has waited longest.
func (st *seat) leave() {
	<-st.turn
	st.forget()
}

func (st *seat) forget() {
	st.seats.mu.Lock()
	defer st.seats.mu.Unlock()
	if st.wanted--; st.wanted == 0 {
		delete(st.seats.byPath, st.path)
	}
}
