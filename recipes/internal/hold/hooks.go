package hold

import (
	"context"
	"time"
)

// Hooks are notified of a hold's life, for telemetry. Leased calls no code outside.
type Hooks interface {
	Leased(shares int)
	// Carry returns parent with the hold's span, for the work under it.
	Carry(parent context.Context) context.Context
	RevocationRequested()
	// Releasing returns the context of the release. Released is called at its end.
	Releasing(ctx context.Context) context.Context
	Released(err error)
	// Ends reports whether the hold ends now. Lost or Discarded follows, once.
	Ends() bool
	Lost(err error, at time.Time)
	Discarded(at time.Time)
}

// NoHooks do nothing.
type NoHooks struct{}

// Leased does nothing.
func (NoHooks) Leased(int) {}

// Carry returns parent.
func (NoHooks) Carry(parent context.Context) context.Context { return parent }

// RevocationRequested does nothing.
func (NoHooks) RevocationRequested() {}

// Releasing returns ctx.
func (NoHooks) Releasing(ctx context.Context) context.Context { return ctx }

// Released does nothing.
func (NoHooks) Released(error) {}

// Ends reports false.
func (NoHooks) Ends() bool { return false }

// Lost does nothing.
func (NoHooks) Lost(error, time.Time) {}

// Discarded does nothing.
func (NoHooks) Discarded(time.Time) {}
