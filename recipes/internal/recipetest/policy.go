package recipetest

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// A Policy calls Note on the operation's goroutine before each pause that the policy in it decides on.
type Policy struct {
	retry.Policy
	Note func()
}

// NewBackOff returns the policy's pauses.
func (p Policy) NewBackOff() backoff.BackOff { return noting{p.Policy.NewBackOff(), p.Note} }

type noting struct {
	backoff.BackOff
	note func()
}

// NextBackOff calls Note and returns the next pause.
func (n noting) NextBackOff() time.Duration {
	n.note()
	return n.BackOff.NextBackOff()
}
