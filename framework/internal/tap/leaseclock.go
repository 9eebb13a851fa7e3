package tap

import "time"

// A leaseClock says until when a session certainly stands.
//
// The ensemble's leader expires a session T after it last heard that the client
// lives. A follower tells it with its answer to the leader's ping, every half
// tick, and a forwarded write does not count as a sign of life by itself. So
// from the answer to a write or a sync that was sent at t it follows that the
// leader has heard of every contact that lies at least a margin before t: the
// ping that carried the news travelled ahead of the request on the same link.
// The margin has to exceed half a tick of the servers.
//
// A handshake is different: the server asks the leader about the session, and
// that question is itself a sign of life. It counts at once, but for some slack.
//
// All times are times of sending, read from the monotonic clock before the
// frame left, so each is earlier than whatever the server did about it.
type leaseClock struct {
	timeout  time.Duration // T
	margin   time.Duration
	base     time.Time   // the leader had a sign of life no earlier than this
	contacts []time.Time // sent on this connection, oldest first, not yet proven
	heard    time.Time   // sending of the latest request that any server answered
	asked    time.Time   // sending of the latest request that goes through the leader
}

// ContactsPerMargin says how finely contacts are kept: of those that lie closer
// together than the margin divided by it, the first stands for all.
const ContactsPerMargin = 8

// contactsPerTimeout bounds how many contacts are kept however small the margin.
const contactsPerTimeout = 256

// handshake takes note of a handshake that was sent at t and answered with the
// session timeout.
func (c *leaseClock) handshake(t time.Time, timeout, margin time.Duration) {
	c.timeout, c.margin = timeout, margin
	c.base = later(c.base, t.Add(-c.slack()))
	c.heard = later(c.heard, t)
	c.asked = t
	c.contacts = append(c.contacts[:0], t)
}

// slack is by how much the client is early where no margin makes it so: its
// timers may be late by milliseconds, and the leader may expire a session the
// moment that its time is up.
func (c *leaseClock) slack() time.Duration { return c.margin / ContactsPerMargin }

// sent takes note that a frame leaves at t.
func (c *leaseClock) sent(t time.Time, throughLeader bool) {
	if throughLeader {
		c.asked = t
	}
	step := max(c.margin/ContactsPerMargin, c.timeout/contactsPerTimeout)
	if n := len(c.contacts); n > 0 && t.Sub(c.contacts[n-1]) < step {
		return
	}
	stale := 0 // to prove one of these would move the deadline into the past
	for stale < len(c.contacts) && t.Sub(c.contacts[stale]) >= c.timeout {
		stale++
	}
	c.contacts = append(c.contacts[:copy(c.contacts, c.contacts[stale:])], t)
}

// answered takes note of the answer to a request that was sent at t.
func (c *leaseClock) answered(t time.Time, throughLeader bool) {
	c.heard = later(c.heard, t)
	if !throughLeader {
		return
	}
	proven := 0
	for proven < len(c.contacts) && t.Sub(c.contacts[proven]) >= c.margin {
		proven++
	}
	if proven == 0 {
		return
	}
	c.base = later(c.base, c.contacts[proven-1])
	c.contacts = c.contacts[:copy(c.contacts, c.contacts[proven:])]
}

// deadline returns until when the session certainly stands, zero before the
// first handshake.
func (c *leaseClock) deadline() time.Time { return c.after(c.base) }

// presumed returns until when it may be presumed to stand.
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
