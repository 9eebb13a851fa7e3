package page

import (
	"sync"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// A hub makes boards of views, one after another, and counts the streams. Its methods may be called concurrently.
type hub struct {
	mu      sync.Mutex // guards following
	judge   judge
	history *history
	latest  *board
	changed chan struct{} // closed and replaced when latest changes
	streams int
}

// newHub returns a hub that has the board of a server that has just started.
func newHub() *hub {
	h := &hub{history: newHistory(), changed: make(chan struct{})}
	h.publish(inspect.View{State: inspect.Connecting})
	return h
}

// publish makes a board of another view.
func (h *hub) publish(view inspect.View) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publishLocked(view)
}

func (h *hub) publishLocked(view inspect.View) {
	h.latest = newBoard(view, &h.judge, h.history)
	close(h.changed)
	h.changed = make(chan struct{})
}

// board returns the latest board and a channel that is closed when there is another. If nothing changes, a finding
// is shown to who asks once it is old enough.
func (h *hub) board() (*board, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if due := h.judge.due; !due.IsZero() && !time.Now().Before(due) {
		view := h.latest.view
		view.At = due
		h.publishLocked(view)
	}
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
