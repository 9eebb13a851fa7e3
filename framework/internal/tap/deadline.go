package tap

import "time"

// SetReadDeadline sets the deadline for reads; until the handshake is complete
// only the handshake's own deadline counts. The wire client would wait 6.7
// session timeouts for the answer, and for ever for its second half.
//
// After that, the wire client sets a deadline before each frame and takes it
// back behind it. One that moves by little is left where it is, and none is taken
// back: the next frame's comes first, and a frame's second half gets one, too.
func (c *Conn) SetReadDeadline(at time.Time) error {
	return c.set(&c.deadlines.read, at, c.Conn.SetReadDeadline)
}

// SetWriteDeadline is to writes what [Conn.SetReadDeadline] is to reads.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	return c.set(&c.deadlines.write, at, c.Conn.SetWriteDeadline)
}

// A limit is a deadline as the socket has it; zero before the handshake is complete.
type limit struct {
	at    time.Time
	slack time.Duration // how much later a deadline may be for this one to do
}

// slackFraction of the time until a deadline is its slack.
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
