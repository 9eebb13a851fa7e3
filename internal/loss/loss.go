// Package loss has what docent's recipes do when they lose a session. A user can't name its type. So
// the part of the client that enforces the deadline can't be given a function of a user's.
package loss

// Functions are what a recipe does when it loses a hold on a session.
type Functions struct {
	// Lose ends the recipe's leases: it closes channels and ends contexts. It must not block, call a
	// function of a user's, log or do I/O, nor take a mutex that is held over any of these.
	Lose func(cause error)
	// After does the rest, on another goroutine, once all leases of the session are lost.
	After func()
}
