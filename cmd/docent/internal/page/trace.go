package page

import (
	"cmp"
	"net/http"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/trace"
)

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
	for path, holds := range b.holds {
		for _, h := range holds {
			all = append(all, trace.Hold{
				Lock: path, Name: h.Name, Owner: h.Owner, Fence: h.Fence,
				From: time.UnixMilli(h.From), To: time.UnixMilli(cmp.Or(h.To, millis(b.view.At))),
			})
		}
	}
	return all
}
