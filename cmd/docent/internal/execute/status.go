package execute

import (
	"errors"
	"time"

	"github.com/docent-go/docent/framework/zktel"
)

// A Status is what the status file says about the end of an exec.
type Status struct {
	Schema   string     `json:"schema"`
	Outcome  string     `json:"outcome"`
	Reason   string     `json:"reason,omitempty"` // of a loss, or the type of the error
	Child    Child      `json:"child"`
	Waited   float64    `json:"waited"` // seconds
	Held     float64    `json:"held"`   // seconds
	Fence    string     `json:"fence,omitempty"`
	Granted  *time.Time `json:"granted_at,omitempty"`
	WarnedAt *time.Time `json:"warned_at,omitempty"`
	KilledAt *time.Time `json:"killed_at,omitempty"`
	NotEnded []Process  `json:"not_ended,omitempty"` // what CMD has started and docent did not end
}

// A Process is one that runs on.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// A Child says how CMD ended. Both are nil if it did not run.
type Child struct {
	Code   *int    `json:"code"`
	Signal *string `json:"signal"`
}

// reasonOf returns the reason of a failure.
func reasonOf(err error) string {
	if errors.Is(err, errProc) {
		return "foreign_proc"
	}
	return zktel.ErrorType(err)
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
