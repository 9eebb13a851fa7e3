package page

import (
	"cmp"
	"net/http"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/trace"
)

// A lane is the holds of one lock in the timeline.
type lane struct {
	Path   string `json:"path"`
	Holds  []hold `json:"holds"`
	More   int    `json:"more,omitempty"`   // older holds that are left out
	Left   *span  `json:"left,omitempty"`   // from the begin of the first of those to the end of the last
	Unseen []span `json:"unseen,omitempty"` // when the holder of the lock was not seen
}

const (
	defaultLanes = 10  // if the tab picks none
	maxBars      = 120 // of a lane
)

// lanes returns the timeline of the locks that the tab picks, else of the first rows.
func (b *board) lanes(pick []string, rows []row) []lane {
	if len(pick) == 0 {
		for _, r := range rows {
			if len(pick) < defaultLanes && len(b.holds()[r.Path]) > 0 {
				pick = append(pick, r.Path)
			}
		}
	}
	lanes := []lane{}
	for _, path := range pick {
		holds := b.holds()[path]
		more := max(0, len(holds)-maxBars)
		lanes = append(lanes, lane{
			Path: path, Holds: append([]hold{}, holds[more:]...), More: more, Left: extent(holds[:more]), Unseen: b.unseen,
		})
	}
	return lanes
}

// extent returns the time from the first begin to the last end of holds, nil for no hold.
func extent(holds []hold) *span {
	if len(holds) == 0 {
		return nil
	}
	all := &span{From: holds[0].From}
	for _, h := range holds {
		if h.To == 0 { // it holds
			return &span{From: all.From}
		}
		all.To = max(all.To, h.To)
	}
	return all
}

// trace returns the holds of the last minutes in Chrome's trace format.
func (s *Server) trace(w http.ResponseWriter, _ *http.Request) {
	b, _ := s.hub.board()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="holds.json"`)
	_ = trace.Write(w, b.traced()) // an error means that the browser has gone
}

// traced returns the holds for a trace. Those that have not ended end now.
func (b *board) traced() []trace.Hold {
	var all []trace.Hold
	for path, holds := range b.holds() {
		for _, h := range holds {
			all = append(all, trace.Hold{
				Lock: path, Name: h.Name, Owner: h.Owner, Fence: h.Fence,
				From: time.UnixMilli(h.From), To: time.UnixMilli(cmp.Or(h.To, millis(b.view.At))),
			})
		}
	}
	return all
}
