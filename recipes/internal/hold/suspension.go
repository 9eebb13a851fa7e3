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
	s := c.Shared(suspensionsKey{}, func() any {
		return &suspensions{holds: make(map[*Hold]struct{})}
	}).(*suspensions)
	s.listens.Do(func() { c.OnState(s.onState) })
	return s
}

// add registers h to be lost at the next break.
func (s *suspensions) add(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[h] = struct{}{}
}

func (s *suspensions) remove(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// onState loses all registered holds at a break.
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
