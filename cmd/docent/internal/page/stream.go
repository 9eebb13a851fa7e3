package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// A query is what a tab asks to see.
type query struct {
	find    string   // in paths, holders and waiters; lower case
	waiting bool     // only locks with waiters
	order   string   // one of orders
	desc    bool     // the other way round
	open    string   // the lock whose queue is shown, "" for none
	whole   bool     // the queue is not folded
	pick    []string // the locks of the timeline; none is the first rows
}

// byMatterFirst is the default order: see byMatter.
const byMatterFirst = "matter"

// orders are what rows can be sorted by: by how much they matter, by their paths, or by a column and then their paths.
func orders() map[string]func(a, b *entry) int {
	return map[string]func(a, b *entry) int{
		byMatterFirst: nil, // a board has these two orders
		"lock":        nil,
		"held":        func(a, b *entry) int { return show.EarliestFirst(a.Held, b.Held) },
		"waiting":     func(a, b *entry) int { return cmp.Compare(b.Waiting, a.Waiting) },
		"longest":     func(a, b *entry) int { return show.EarliestFirst(a.Longest, b.Longest) },
	}
}

const (
	maxFind = 256
	maxPick = 24
	maxRows = 200
)

// parseQuery returns what is asked for, or all that is wrong with it.
func parseQuery(values url.Values) (query, error) {
	q := query{
		find: strings.ToLower(values.Get("find")), waiting: values.Get("waiting") == "1",
		order: cmp.Or(values.Get("sort"), byMatterFirst), desc: values.Get("desc") == "1",
		open: values.Get("open"), whole: values.Get("whole") == "1", pick: values["pick"],
	}
	var faults []error
	if _, known := orders()[q.order]; !known {
		faults = append(faults, fmt.Errorf("sort %q: must be one of %v", q.order, slices.Sorted(maps.Keys(orders()))))
	}
	if utf8.RuneCountInString(q.find) > maxFind {
		faults = append(faults, fmt.Errorf("find: must have at most %d characters", maxFind))
	}
	if len(q.pick) > maxPick {
		faults = append(faults, fmt.Errorf("pick: must be given at most %d times", maxPick))
	}
	return q, errors.Join(faults...)
}

// maxStreams is how many streams may be open.
const maxStreams = 64

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
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.refuse(w, r, http.StatusServiceUnavailable, "streams", fmt.Sprintf("%d pages are open already: close one", maxStreams))
		return
	}
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

// A message brings a tab from the frame that it has to another: it has the parts that have changed, by their names, and
// of the rows those that have changed. A snapshot is the difference to an empty frame.
type message map[string]any

// sent is what a tab has been sent.
type sent struct {
	parts map[string]json.RawMessage
	rows  map[string]json.RawMessage // by path
}

// difference returns the message that brings the tab to f, which it then has.
func (s *sent) difference(f frame) message {
	m, parts, rows := message{}, make(map[string]json.RawMessage), make(map[string]json.RawMessage)
	order, changed := []string{}, []json.RawMessage(nil)
	for _, r := range f.Rows {
		order, rows[r.Path] = append(order, r.Path), encode(r)
		if !bytes.Equal(rows[r.Path], s.rows[r.Path]) {
			changed = append(changed, rows[r.Path])
		}
	}
	if changed != nil {
		m["rows"] = changed
	}
	for name, part := range map[string]any{
		"summary": f.Summary, "findings": f.Findings, "order": order, "queue": f.Queue, "graph": f.Graph, "holds": f.Holds,
	} {
		if parts[name] = encode(part); !bytes.Equal(parts[name], s.parts[name]) {
			m[name] = parts[name]
		}
	}
	s.parts, s.rows = parts, rows
	return m
}

// encode panics if v has no JSON, which is a fault of the page's types.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
