package framework

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/retry"
)

// CircuitBreaking registers fn as [Client.OnState] does, for a connection that may flap. The first
// change away from Connected is passed on and opens the circuit. While the circuit is open, fn gets
// only one Lost, and Closed.
//
// After each wait of the policy, the circuit closes if the client was Connected during all of it.
// The circuit also closes if the policy allows no further wait. Then fn gets the present state,
// unless that is the state that fn got last. From is always the state that fn got before.
//
// remove ends the calls as OnState's remove does. If the policy is invalid, or c or fn is nil,
// CircuitBreaking returns an error and registers nothing.
func CircuitBreaking(c *Client, policy retry.Policy, fn func(StateChange)) (remove func(), err error) {
	err = retry.Validate(policy)
	if c == nil {
		err = errors.Join(err, errors.New("client: must not be nil"))
	}
	if fn == nil {
		err = errors.Join(err, errors.New("state listener: must not be nil"))
	}
	if err != nil {
		return nil, fmt.Errorf("framework: circuit breaking: %w", err)
	}
	b := &breaker{policy: policy, out: listeners.NewQueued[StateChange](c.core.listenerPanicked)}
	removeOut := b.out.Add(fn)
	removeIn := c.OnState(b.take)
	return func() {
		removeIn()
		b.stop()
		removeOut()
	}, nil
}

// A breaker filters the client's states for one listener.
type breaker struct {
	policy retry.Policy
	out    *listeners.Queued[StateChange] // calls the listener

	mu     sync.Mutex // guards following; never held across a callback
	told   State      // the state that the listener got last
	now    StateChange
	open   bool
	calm   bool // no change during the present wait
	waits  backoff.BackOff
	timer  *time.Timer
	closed bool
}

// take is called for each change of the client, in order.
func (b *breaker) take(change StateChange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.now, b.calm = change, false
	switch {
	case change.To == Closed:
		b.closeLocked()
		b.tellLocked()
		b.closed = true
	case !b.open:
		b.tellLocked()
		if change.To != Connecting && change.To != Connected { // it can't reach an ensemble, or may not
			b.open, b.waits = true, b.policy.NewBackOff()
			b.waitLocked()
		}
	case change.To == Lost && b.told != Lost:
		b.tellLocked()
	}
}

// waitLocked begins the next wait, or closes the circuit if there is none.
func (b *breaker) waitLocked() {
	wait := b.waits.NextBackOff()
	if wait < 0 {
		b.closeLocked()
		return
	}
	b.calm = true
	b.timer = time.AfterFunc(wait, b.waited)
}

// waited runs on the timer's goroutine and does not block.
func (b *breaker) waited() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.open:
		return
	case b.now.To == Connected && b.calm:
		b.closeLocked()
	default:
		b.waitLocked()
	}
	if !b.open && b.now.To != b.told {
		b.tellLocked()
	}
}

func (b *breaker) closeLocked() {
	b.open = false
	if b.timer != nil {
		b.timer.Stop()
	}
}

func (b *breaker) tellLocked() {
	change := b.now
	change.From = b.told
	b.told = change.To
	b.out.Notify(change)
}

func (b *breaker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeLocked()
	b.closed = true
}
