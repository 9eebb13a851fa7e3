package page

import (
	"bytes"
	"encoding/json"
	"slices"
)

// A message brings a tab from the frame that it has to another. A field that is absent has not changed. A
// snapshot is the difference to an empty frame.
type message struct {
	Number   int             `json:"n"`
	Now      int64           `json:"now"` // by the clock of docent
	Summary  json.RawMessage `json:"summary,omitempty"`
	Findings json.RawMessage `json:"findings,omitempty"`
	Rows     *rowsChange     `json:"rows,omitempty"`
	Queue    json.RawMessage `json:"queue,omitempty"`
	Graph    json.RawMessage `json:"graph,omitempty"`
	Holds    json.RawMessage `json:"holds,omitempty"`
}

// A rowsChange has the rows that are new or changed. If Order is there, it names all rows.
type rowsChange struct {
	Set   []json.RawMessage `json:"set,omitempty"`
	Order []string          `json:"order"`
}

// sent is what a tab has been sent.
type sent struct {
	summary, findings, queue, graph, holds json.RawMessage
	rows                                   map[string]json.RawMessage
	order                                  []string
}

// difference returns the message that brings the tab to f, which it then has.
func (s *sent) difference(f frame) message {
	return message{
		Summary:  renewed(&s.summary, f.Summary),
		Findings: renewed(&s.findings, f.Findings),
		Rows:     s.changeRows(f.Rows),
		Queue:    renewed(&s.queue, f.Queue),
		Graph:    renewed(&s.graph, f.Graph),
		Holds:    renewed(&s.holds, f.Holds),
	}
}

// renewed returns v as JSON, and nil if that is what the tab has.
func renewed(has *json.RawMessage, v any) json.RawMessage {
	data := encode(v)
	if bytes.Equal(data, *has) {
		return nil
	}
	*has = data
	return data
}

func (s *sent) changeRows(rows []row) *rowsChange {
	var c rowsChange
	next, order := make(map[string]json.RawMessage, len(rows)), make([]string, 0, len(rows))
	for _, r := range rows {
		data := encode(r)
		if !bytes.Equal(data, s.rows[r.Path]) {
			c.Set = append(c.Set, data)
		}
		next[r.Path] = data
		order = append(order, r.Path)
	}
	if s.rows == nil || !slices.Equal(order, s.order) {
		c.Order = order
	}
	s.rows, s.order = next, order
	if c.Set == nil && c.Order == nil {
		return nil
	}
	return &c
}

// encode panics if v has no JSON, which is a fault of the page's types.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
