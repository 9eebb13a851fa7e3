package form

import (
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// An Event is what happened to a contender, or to the view of a directory, as "watch" writes it.
type Event struct {
	Schema    string     `json:"schema"`
	Event     string     `json:"event"`
	At        string     `json:"at"`
	Path      string     `json:"path"` // of the lock; of "live" and "stale" the watched directory
	Kind      string     `json:"kind,omitempty"`
	Contender *Contender `json:"contender,omitempty"`
	Waited    *float64   `json:"waited,omitempty"` // seconds, of "granted" and "gone"
	Held      *float64   `json:"held,omitempty"`   // seconds, of "released"
	Before    bool       `json:"before,omitempty"` // it was so when the watch began
	Unsure    bool       `json:"unsure,omitempty"` // the time is not known, or a hold was too short to be seen
	Cause     string     `json:"cause,omitempty"`  // of "stale"
}

// EventOf returns the form of what happened at a path. Its caller sets the other fields.
func EventOf(event string, at time.Time, path string) Event {
	return Event{Schema: Version, Event: event, At: instant(at), Path: path}
}

// WithContender returns the event with the contender, without its data.
func (e Event) WithContender(kind inspect.Kind, c inspect.Contender) Event {
	one := ContenderOf(c, false)
	e.Kind, e.Contender = string(kind), &one
	return e
}

// Seconds returns d in seconds, nil if it is 0.
func Seconds(d time.Duration) *float64 { return optional(d.Seconds()) }
