package tap_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestAFramesDeadlineHoldsToAThirtySecond sets deadlines as the wire client does: one
// for each frame, which it takes back behind it.
func TestAFramesDeadlineHoldsToAThirtySecond(t *testing.T) {
	for _, tc := range []struct {
		name   string
		frames int
		every  time.Duration // a frame comes
	}{
		{"no frame", 0, 0},
		{"frames in a hurry", 1000, time.Millisecond},
		{"frames that leave time", 20, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit = 32 * time.Second
				p := newPeer(t)
				for range tc.frames {
					_ = p.client.SetReadDeadline(time.Now().Add(limit))
					_ = p.client.SetWriteDeadline(time.Now().Add(limit))
					p.read()
					_ = p.client.SetReadDeadline(time.Time{})
					_ = p.client.SetWriteDeadline(time.Time{})
					<-time.After(tc.every)
				}
				for what, wait := range map[string]func() error{
					"read": func() error {
						_ = p.client.SetReadDeadline(time.Now().Add(limit))
						_, err := p.client.Read(make([]byte, 4))
						return err
					},
					"write": func() error {
						_ = p.client.SetWriteDeadline(time.Now().Add(limit))
						_, err := p.client.Conn.Write(make([]byte, 4)) // the Tap's own write reports nothing
						return err
					},
				} {
					start := time.Now()
					err := wait()
					var timedOut net.Error
					if took := time.Since(start); !errors.As(err, &timedOut) || !timedOut.Timeout() ||
						took > limit || took < limit-limit/32 {
						t.Errorf("%s: after %v: %v, want the end of the time between %v and %v", what, took, err, limit-limit/32, limit)
					}
				}
			})
		})
	}
}
