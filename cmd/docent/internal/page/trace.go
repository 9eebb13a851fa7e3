package page

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
)

// A traceEvent is an event in Chrome's trace format, which Perfetto reads.
type traceEvent struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"`
	PID   int               `json:"pid"`
	TID   int               `json:"tid"`
	Start int64             `json:"ts,omitempty"`  // µs
	Took  int64             `json:"dur,omitempty"` // µs
	Args  map[string]string `json:"args,omitempty"`
}

// trace returns the holds of the last minutes, a row per lock, in Chrome's trace format.
func (s *Server) trace(w http.ResponseWriter, _ *http.Request) {
	b, _ := s.hub.board()
	events := []traceEvent{{Name: "process_name", Phase: "M", PID: 1, Args: map[string]string{"name": "locks"}}}
	if b != nil {
		for i, path := range slices.SortedFunc(maps.Keys(b.holds), cmp.Compare[string]) {
			events = append(events, traceEvent{
				Name: "thread_name", Phase: "M", PID: 1, TID: i + 1, Args: map[string]string{"name": path},
			})
			for _, h := range b.holds[path] {
				events = append(events, h.event(i+1, b))
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="holds.json"`)
	// An error means that the browser has gone.
	_ = json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

func (h hold) event(lane int, b *board) traceEvent {
	to := cmp.Or(h.To, millis(b.view.At))
	e := traceEvent{
		Name: h.Name, Phase: "X", PID: 1, TID: lane,
		Start: h.From * int64(time.Millisecond/time.Microsecond),
		Took:  max(1, to-h.From) * int64(time.Millisecond/time.Microsecond),
		Args:  map[string]string{"fence": h.Fence},
	}
	if h.Owner != "" {
		e.Args["owner"] = h.Owner
	}
	return e
}
