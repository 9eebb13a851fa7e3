package form

import (
	"time"
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

// Seconds returns d in seconds, nil if it is 0.
func Seconds(d time.Duration) *float64 { return optional(d.Seconds()) }
