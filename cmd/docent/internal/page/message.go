package page

import (
	"bytes"
	"encoding/json"
)

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
