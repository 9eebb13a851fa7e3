package tap

import "time"

// A leaseClock knows until when a session certainly exists at the ensemble.
//
// The ensemble's leader expires a session T after it last learned that the client
// lives. A follower reports its clients to the leader with its answer to the
// leader's ping, every half tick; a forwarded write reports nothing by itself. If
// another server becomes the leader, it gives every session its full T again.
//
// A contact is a request that the follower has answered. It counts from its sending,
// but only once the answer is there: what was sent may have arrived late, together
// with what was sent after it.
//
// A proof is an answer that only a quorum's commit can cause: see [proves]. If the
// request was sent at t, the leader has learned of every contact that was answered at
// least a margin before t, because the report travelled ahead of the request on the
// same link. A later leader became active only after t, because one of its voters
// acknowledged the transaction to the earlier leader. The margin has to exceed half
// a tick of the servers.
//
// The handshake of a new session is a committed transaction, so it is a proof. A
// handshake that resumes a session is answered from the leader's memory, which may
// be the memory of a leader that another one has replaced. It is a contact of which
// that leader learns at once, so the first proof on its connection needs no margin:
// a server closes its clients' connections when it loses its leader.
//
// All times are times of sending, read from the monotonic clock before the
// frame left, so each is earlier than whatever the server did about it.
type leaseClock struct {
	timeout  time.Duration // T
	margin   time.Duration
	base     time.Time // the leader learned that the client lives no earlier than this
	contacts []contact // of this connection, oldest first, not yet proven
	resumed  time.Time // sending of this connection's handshake; zero once it is proven
	proven   time.Time // sending of the latest proof on this connection
	heard    time.Time // sending of the latest request that any server answered
	latest   time.Time // sending of the latest request
}

// A contact is an answered request of which the server keeps that the client lives.
type contact struct{ sent, answered time.Time }

// ContactsPerMargin says how finely contacts are kept: of those that lie closer
// together than the margin divided by it, the first counts for all.
const ContactsPerMargin = 8

// contactsPerTimeout bounds how many contacts are kept however small the margin.
const contactsPerTimeout = 256

// handshake takes note of a handshake that was sent at t and answered with the
// session timeout. isNew says that it began the session.
func (c *leaseClock) handshake(t time.Time, isNew bool, timeout, margin time.Duration) {
	c.timeout, c.margin = timeout, margin
	c.heard, c.latest = later(c.heard, t), t
	c.contacts = append(c.contacts[:0], contact{t, time.Now()})
	c.resumed, c.proven = t, time.Time{}
	if isNew {
		c.prove(t)
	}
}

// slack is by how much the client is early where no margin makes it so: its
// timers may be late by milliseconds, and the leader may expire a session the
// moment that its time is up.
func (c *leaseClock) slack() time.Duration { return c.margin / ContactsPerMargin }

// sent takes note that a frame leaves at t.
func (c *leaseClock) sent(t time.Time) { c.latest = t }

// answered takes note of the answer to a request that was sent at t, of whether it
// is a contact, and of whether it is a proof.
func (c *leaseClock) answered(t time.Time, isContact, isProof bool) {
	c.heard = later(c.heard, t)
	if isContact {
		c.contact(t, time.Now())
	}
	if isProof {
		c.prove(t)
	}
}

// contact keeps a contact, unless another one lies closely before it.
func (c *leaseClock) contact(sent, answered time.Time) {
	step := max(c.margin/ContactsPerMargin, c.timeout/contactsPerTimeout)
	if n := len(c.contacts); n > 0 && sent.Sub(c.contacts[n-1].sent) < step {
		return
	}
	stale := 0 // to prove one of these would move the deadline into the past
	for stale < len(c.contacts) && sent.Sub(c.contacts[stale].sent) >= c.timeout {
		stale++
	}
	c.contacts = append(c.contacts[:copy(c.contacts, c.contacts[stale:])], contact{sent, answered})
}

// prove takes note of a proof that was sent at t.
func (c *leaseClock) prove(t time.Time) {
	c.proven = later(c.proven, t)
	if !c.resumed.IsZero() && !t.Before(c.resumed) {
		c.base = later(c.base, c.resumed.Add(-c.slack()))
		c.resumed = time.Time{}
	}
	proven := 0
	for proven < len(c.contacts) && t.Sub(c.contacts[proven].answered) >= c.margin {
		proven++
	}
	if proven == 0 {
		return
	}
	c.base = later(c.base, c.contacts[proven-1].sent)
	c.contacts = c.contacts[:copy(c.contacts, c.contacts[proven:])]
}

// deadline returns until when the session certainly exists, zero before the
// first proof.
func (c *leaseClock) deadline() time.Time { return c.after(c.base) }

// presumed returns until when it may be presumed to exist.
func (c *leaseClock) presumed() time.Time { return c.after(c.heard) }

func (c *leaseClock) after(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(c.timeout)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
