package tap_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
)

// Each write has a deadline of its own, however many frames wait.
func TestFramesToASlowPeerHaveADeadlineEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		const n = 24
		step := timeout * 2 / 3 / 8 // each frame takes an eighth of what a frame may take
		ended := make(chan error, n)
		for range n {
			rq := &tap.Request{Opcode: opExists, Body: make([]byte, 64<<10), Limit: 1000}
			if !p.tap.Send(rq) {
				t.Fatal("not sent")
			}
			go func() { <-rq.Done(); _, err := rq.Answer(); ended <- err }()
		}
		go func() { // a server behind a slow link: reads a frame, answers, takes its time
			for {
				b, err := nextFrame(p.server)
				if err != nil {
					return
				}
				a := answerTo(b, -101, "")
				if _, err := p.server.Write(framed(a)); err != nil {
					return
				}
				<-time.After(step)
			}
		}()
		go func() { _, _ = io.Copy(io.Discard, p.client) }()
		for i := range n {
			if err := <-ended; err != nil {
				t.Errorf("request %d of %d: %v; fault %v", i, n, err, p.tap.Fault())
				break
			}
		}
		p.client.Close()
		p.server.Close()
		<-time.After(timeout) // the server's goroutine ends
	})
}

// A request that waits for others to be written is no sign that the server is silent.
func TestARequestCountsFromItsWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		const n = 6
		step, start := timeout/10, time.Now()
		var last *tap.Request
		for range n {
			last = &tap.Request{Opcode: opExists, Body: make([]byte, 64<<10), Limit: 1000}
			p.tap.Send(last)
		}
		go func() { _, _ = io.Copy(io.Discard, p.client) }()
		for range n {
			b, _ := nextFrame(p.server)
			_, _ = p.server.Write(framed(answerTo(b, -101, "")))
			<-time.After(step)
		}
		<-last.Done()
		if got, want := p.tap.Presumed().Sub(start), timeout+3*step; got < want {
			t.Errorf("presumed until %v after the calls, want at least %v", got, want)
		}
		p.client.Close()
		p.server.Close()
	})
}

// A session that has ended, by the server's word or the client's, takes no requests.
func TestAnExpiredHandshakeTakesNoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.dial()
		p.hello(0, 7)
		p.reply(greeting(0)[:37])
		if p.tap.Ended() == nil {
			t.Fatal("not ended")
		}
		if p.tap.Open() {
			t.Error("the connection of an expired session is open for requests")
		}
		go func() { _, _ = io.Copy(io.Discard, p.server) }() // as the buffers of the sockets do
		rq := &tap.Request{Opcode: opExists, Limit: 1}
		if p.tap.Send(rq) {
			t.Error("a request was sent in a session that the server has ended")
		}
		<-time.After(time.Hour)
		select {
		case <-rq.Done():
		default:
			t.Error("the request has not ended an hour later")
		}
		p.client.Close()
		p.server.Close()
	})
}
