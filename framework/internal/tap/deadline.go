package tap

import "time"

// Until the handshake is complete, the socket has one deadline for reads and writes: the
// handshake's, from [Tap.Wrap]. The wire client would wait 6.7 session timeouts for the reply, and
// forever for its second half. After that, every read and every write of a frame has a deadline of
// its own.

// SetReadDeadline sets the deadline for reads once the handshake is complete. The wire client sets
// a deadline before each frame and removes it after the frame. If the new deadline differs by
// little, the old one remains. No deadline is removed: the next frame's replaces it, and so a
// frame's second half has a deadline, too.
func (c *Conn) SetReadDeadline(at time.Time) error {
	if !c.established.Load() || at.IsZero() {
		return nil
	}
	return c.deadlines.read.set(at, c.Conn.SetReadDeadline)
}

// SetWriteDeadline does nothing, because the wire client knows only its own writes. The writer sets the
// deadline of each write.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// write writes frames; it is only for the writer.
func (c *Conn) write(frames []byte) error {
	// A socket that takes no deadline fails at the write, too.
	_ = c.deadlines.write.set(time.Now().Add(c.frameTime), c.Conn.SetWriteDeadline)
	_, err := c.Conn.Write(frames)
	return err
}

// frameTime returns how long a frame may take: as long as the wire client grants.
func frameTime(timeout time.Duration) time.Duration { return timeout * 2 / 3 }

// A limit is the deadline of a socket's reads or writes; zero before the handshake is complete.
type limit struct {
	at    time.Time
	slack time.Duration // a deadline that is later by less needs no change
}

// slackFraction says which part of the time until a deadline is its slack.
const slackFraction = 32

func (l *limit) set(at time.Time, set func(time.Time) error) error {
	if later := at.Sub(l.at); !l.at.IsZero() && later >= 0 && later < l.slack {
		return nil
	}
	*l = limit{at: at, slack: time.Until(at) / slackFraction}
	return set(at)
}
