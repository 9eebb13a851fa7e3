// Package change finds what has changed between two views of locks.
package change

import (
	"context"
	"iter"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/form"
)

// A What says what an event is about.
type What string

// The events. Granted, Queued, Released, Gone and Revoked are of a contender. Live and Stale are of the
// watched directory.
const (
	Granted  What = "granted"
	Queued   What = "queued"
	Released What = "released" // the znode of a holder was deleted, by its owner or otherwise
	Gone     What = "gone"     // the znode of a waiter was deleted before its turn
	Revoked  What = "revoked"  // the contender was asked to release
	Live     What = "live"
	Stale    What = "stale"
)

// A Source gives views of the locks: the present one, and the latest one whenever that has changed.
// The sequence ends with ctx.
type Source interface {
	Views(ctx context.Context) iter.Seq[inspect.View]
}

// An Event is one difference between two views.
type Event struct {
	What      What
	At        time.Time // of the later view
	Path      string    // of the lock, or the watched directory
	Kind      inspect.Kind
	Contender inspect.Contender
	Waited    time.Duration // of Granted and Gone; 0 if the contender was not seen to wait
	Held      time.Duration // of Released; 0 unless the caller measures holds

	// Before reports that it was so in the first view.
	Before bool
	// Unsure reports that the view was stale meanwhile, so At is no more than the latest time. Of Released
	// it reports that Held is the longest possible hold, and of Gone that a hold may have been too
	// short to be seen.
	Unsure bool
	Cause  error // of Stale
}

// Form returns the event as JSON has it.
func (e Event) Form() form.Event {
	f := form.Event{
		Schema: form.Version, Event: string(e.What), At: form.Instant(e.At), Path: e.Path,
		Waited: form.Seconds(e.Waited), Held: form.Seconds(e.Held), Before: e.Before, Unsure: e.Unsure,
	}
	if e.What != Live && e.What != Stale {
		c := form.ContenderOf(e.Contender, false)
		f.Kind, f.Contender = string(e.Kind), &c
	}
	if e.Cause != nil {
		f.Cause = e.Cause.Error()
	}
	return f
}
