package wire

import "time"

// A leaseClock knows until when a session certainly exists at the ensemble.
//
// The ensemble's leader expires a session T after the last report that the client lives. A follower
// reports its clients to the leader in its reply to the leader's ping, every half tick. A forwarded
// write reports nothing by itself. If another server becomes the leader, it gives every session its
// full T again.
//
// With observer masters, an observer reports its clients to a follower, and that follower to the
// leader, each every half tick. So a report takes a whole tick there.
//
// A contact is a request to which the follower has replied. It counts from its sending, but only
// once the reply is there: the request may have arrived late, together with later requests.
//
// A proof is a reply that only a quorum's commit can cause; [proves] has the rules. Let t be the
// time when its request was sent. The leader knows every contact that was answered at least a
// margin before t. The reason is that the report was sent ahead of the request on the same link. A
// later leader became active only after t, because one of its voters acknowledged the transaction
// to the earlier leader. The margin has to exceed half a tick of the servers, or a whole tick with
// observer masters.
//
// The handshake of a new session is a committed transaction, so it is a proof. The reply to a
// handshake that resumes a session comes from a leader's memory, and another leader may have
// replaced that leader. Such a handshake is a contact that the leader learns of at once. So the
// first proof on its connection needs no margin, because a server closes its clients' connections
// when it loses its leader.
//
// All times are times of sending, read from the monotonic clock before the frame was sent. So each
// time is earlier than the server's processing of the frame.
type leaseClock struct {
	timeout    time.Duration // T
	margin     time.Duration
	base       time.Time // the leader learned at this time or later that the client lives
	contacts   []contact // of this connection, oldest first, not yet proven
	resumed    time.Time // sending of this connection's handshake; zero once it is proven
	proven     time.Time // sending of the latest proof on this connection
	answeredAt time.Time // sending of the latest request with a reply from any server
	latest     time.Time // sending of the latest request
}

// A contact is an answered request by which the server records that the client lives.
type contact struct{ sent, answered time.Time }

// ContactsPerMargin says how finely contacts are kept. Of contacts that are closer together than
// the margin divided by it, only the first is kept.
const ContactsPerMargin = 8

// contactsPerTimeout bounds how many contacts are kept, however small the margin is.
const contactsPerTimeout = 256

// handshake records a handshake that was sent at t, and the session timeout in its reply. isNew
// says that it began the session.
func (c *leaseClock) handshake(t time.Time, isNew bool, timeout, margin time.Duration) {
	c.timeout, c.margin = timeout, margin
	c.answeredAt, c.latest = later(c.answeredAt, t), t
	c.contacts = append(c.contacts[:0], contact{t, time.Now()})
	c.resumed, c.proven = t, time.Time{}
	if isNew {
		c.prove(t)
	}
}

// slack is how much earlier the client acts than the timeout alone requires. Its timers may be late
// by milliseconds, and the leader may expire a session the moment that its time is up.
func (c *leaseClock) slack() time.Duration { return c.margin / ContactsPerMargin }

// sent records that a frame is sent at t.
func (c *leaseClock) sent(t time.Time) { c.latest = t }

// answered records the reply to a request that was sent at t. isContact and isProof say whether the
// request is a contact and a proof.
func (c *leaseClock) answered(t time.Time, isContact, isProof bool) {
	c.answeredAt = later(c.answeredAt, t)
	if isContact {
		c.contact(t, time.Now())
	}
	if isProof {
		c.prove(t)
	}
}

// contact keeps a contact, unless an earlier contact is close to it.
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

// prove records a proof that was sent at t.
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

// deadline returns until when the session certainly exists, zero before the first proof.
func (c *leaseClock) deadline() time.Time { return c.after(c.base) }

// presumed returns until when the session may be presumed to exist.
func (c *leaseClock) presumed() time.Time { return c.after(c.answeredAt) }

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
