package page

import (
	"sync"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// A hub has the latest board, and counts the streams.
type hub struct {
	mu      sync.Mutex // guards following
	latest  *board
	changed chan struct{} // closed and replaced when latest changes
	streams int
}

// newHub returns a hub that has the board of a server that has just started.
func newHub() hub {
	c := collector{history: newHistory()}
	return hub{latest: c.board(inspect.View{State: inspect.Connecting}), changed: make(chan struct{})}
}

// publish makes b the latest board.
func (h *hub) publish(b *board) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = b
	close(h.changed)
	h.changed = make(chan struct{})
}

// board returns the latest board and a channel that is closed when there is another.
func (h *hub) board() (*board, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest, h.changed
}

// maxStreams is how many streams may be open.
const maxStreams = 64

// open counts a stream, unless there are too many already.
func (h *hub) open() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams >= maxStreams {
		return false
	}
	h.streams++
	return true
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}
