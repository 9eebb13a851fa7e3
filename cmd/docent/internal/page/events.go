package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// events is the stream of a tab. It sends "snapshot" first, then "delta" for each change, and
// "beat" if nothing has changed for a while. Messages are numbered, without a gap.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if r.Method == http.MethodHead {
		return
	}
	if !s.hub.open() {
		s.refuse(w, r, http.StatusServiceUnavailable, "streams", fmt.Sprintf("%d pages are open already: close one", maxStreams))
		return
	}
	defer s.hub.close()
	t := &tab{w: w, control: http.NewResponseController(w), write: s.cfg.Write}
	t.run(r.Context(), s.hub, s.cfg, q)
}

// A tab is a stream to a browser.
type tab struct {
	w       http.ResponseWriter
	control *http.ResponseController
	write   time.Duration
	number  int
	sent    sent
}

// run sends until ctx ends or the tab is gone or too slow. It sends the latest board only.
func (t *tab) run(ctx context.Context, h *hub, cfg Config, q query) {
	beat := time.NewTimer(cfg.Beat)
	defer beat.Stop()
	var shown *board
	for {
		b, changed := h.board()
		var err error
		switch {
		case t.number == 0:
			err = t.send("snapshot", t.sent.difference(b.frame(cfg, q)))
		case b != shown:
			err = t.send("delta", t.sent.difference(b.frame(cfg, q)))
		default:
			err = t.send("beat", message{})
		}
		if err != nil {
			return // the tab is gone, or does not read
		}
		shown = b
		beat.Reset(cfg.Beat)
		select {
		case <-changed:
		case <-beat.C:
		case <-ctx.Done():
			return
		}
	}
}

// send sends a message, within the time that a message may take.
func (t *tab) send(event string, m message) error {
	t.number++
	m["n"], m["now"] = t.number, millis(time.Now()) // by the clock of docent
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := t.control.SetWriteDeadline(time.Now().Add(t.write)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(t.w, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	if err := t.control.Flush(); err != nil {
		return err
	}
	return t.control.SetWriteDeadline(time.Time{}) // HTTP/2 would reset an idle stream
}
