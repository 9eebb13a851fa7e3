package tap_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// writeTime is how long a write may take: two thirds of the session timeout, as with the wire client.
const writeTime = timeout * 2 / 3

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
			const readTime = 32 * time.Second
			for what, ends := range map[string]struct {
				limit time.Duration
				wait  func(p *peer) error
			}{
				"read": {readTime, func(p *peer) error {
					_ = p.client.SetReadDeadline(time.Now().Add(readTime))
					_, err := p.client.Read(make([]byte, 4))
					return err
				}},
				"write": {writeTime, func(p *peer) error {
					_, _ = p.client.Write(make([]byte, 12)) // reports nothing
					_, _ = p.client.Read(make([]byte, 4))   // ends with the connection
					return p.tap.Fault()
				}},
				"request": {writeTime, func(p *peer) error {
					_, _ = p.tap.Ask(opWhoAmI, nil, 100)
					return p.tap.Fault()
				}},
			} {
				synctest.Test(t, func(t *testing.T) {
					p := newPeer(t)
					for range tc.frames {
						_ = p.client.SetReadDeadline(time.Now().Add(readTime))
						_ = p.client.SetWriteDeadline(time.Now().Add(time.Hour)) // not the wire client's to say
						p.read()
						_ = p.client.SetReadDeadline(time.Time{})
						_ = p.client.SetWriteDeadline(time.Time{})
						<-time.After(tc.every)
					}
					start := time.Now()
					err := ends.wait(p)
					var timedOut net.Error
					if took := time.Since(start); !errors.As(err, &timedOut) || !timedOut.Timeout() ||
						took > ends.limit || took < ends.limit-ends.limit/32 {
						t.Errorf("%s: after %v: %v, want the end of the time between %v and %v",
							what, took, err, ends.limit-ends.limit/32, ends.limit)
					}
				})
			}
		})
	}
}

// No deadline of the handshake, and none of an earlier frame, ends a later write.
func TestARequestIsSentAfterAnyIdleTime(t *testing.T) {
	for _, frames := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			for range frames {
				p.read()
			}
			<-time.After(time.Hour) // the handshake had a minute
			p.ask(opWhoAmI, nil, 100)
			if fault := p.tap.Fault(); fault != nil {
				t.Errorf("after %d frames and an hour: %v", frames, fault)
			}
			p.client.Close()
		})
	}
}
