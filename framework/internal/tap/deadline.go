package tap

import "time"

// SetReadDeadline sets the deadline for reads. Until the handshake is complete, only the
// handshake's own deadline counts. The wire client would wait 6.7 session timeouts for the reply,
// and forever for its second half.
//
// After that, the wire client sets a deadline before each frame and removes it after the frame. If
// the new deadline differs by little, the old one remains. No deadline is removed: the next frame's
// replaces it, and so a frame's second half has a deadline, too.
func (c *Conn) SetReadDeadline(at time.Time) error {
	return c.set(&c.deadlines.read, at, c.Conn.SetReadDeadline)
}

// SetWriteDeadline sets the deadline for writes, by the rules of [Conn.SetReadDeadline].
func (c *Conn) SetWriteDeadline(at time.Time) error {
	return c.set(&c.deadlines.write, at, c.Conn.SetWriteDeadline)
}

// slackFraction says which part of the time until a deadline is its slack.
const slackFraction = 32

func (c *Conn) set(l *limit, at time.Time, set func(time.Time) error) error {
	if !c.established.Load() {
		return set(c.deadline)
	}
	if !l.at.IsZero() {
		if later := at.Sub(l.at); at.IsZero() || later >= 0 && later < l.slack {
			return nil
		}
	}
	*l = limit{at: at, slack: time.Until(at) / slackFraction}
	return set(at)
}
