package hold

import (
	"sync"

	"github.com/docent-go/docent/framework"
)

// suspensions are the holds of one client that are lost when its connection breaks.
type suspensions struct {
	listens sync.Once

	mu    sync.Mutex // guards holds
	holds map[*Hold]struct{}
}

type suspensionsKey struct{}

func suspensionsOf(c *framework.Client) *suspensions {
	return c.Shared(suspensionsKey{}, func() any {
		return &suspensions{holds: make(map[*Hold]struct{})}
	}).(*suspensions)
}

// add has h lost at the next break. If the connection broke after the grant was certain, h is lost at
// once: the listener may have been told of that before.
func (s *suspensions) add(h *Hold) {
	s.listens.Do(func() { h.Client.OnState(s.onState) })
	s.mu.Lock()
	s.holds[h] = struct{}{}
	s.mu.Unlock()
	if h.Znode.Session.Breaks() != h.Znode.Breaks {
		h.lose(ErrSuspended)
	}
}

func (s *suspensions) remove(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// onState loses all holds at a break.
func (s *suspensions) onState(change framework.StateChange) {
	if change.To == framework.Connected {
		return
	}
	s.mu.Lock()
	holds := make([]*Hold, 0, len(s.holds))
	for h := range s.holds {
		holds = append(holds, h)
	}
	s.mu.Unlock()
	for _, h := range holds {
		h.lose(ErrSuspended)
	}
}
