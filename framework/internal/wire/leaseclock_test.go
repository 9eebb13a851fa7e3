package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/proto"
)

// Times of a session with T = 8 s and a margin of 2 s. A contact is kept if it
// lies at least margin/8 = 250 ms after the one before.
const (
	timeout = 8 * time.Second
	margin  = 2 * time.Second

	// greeted is the deadline after a handshake, which counts less a slack.
	greeted = timeout - margin/wire.ContactsPerMargin
)

func TestDeadline_moves_by_proof_only(t *testing.T) {
	type step struct {
		at   time.Duration // since the handshake was sent
		do   func(*peer)
		want time.Duration // the deadline afterwards, since the handshake
	}
	for _, tc := range []struct {
		name  string
		steps []step
	}{
		{"a handshake counts from when it was sent", []step{
			{time.Second, (*peer).none, greeted},
		}},
		{"answers to reads and pings move nothing", []step{
			{time.Second, (*peer).read, greeted},
			{3 * time.Second, (*peer).ping, greeted},
			{6 * time.Second, (*peer).read, greeted},
		}},
		{"a write proves the contacts that lie a margin before it", []step{
			{time.Second, (*peer).ping, greeted},
			{2500 * time.Millisecond, (*peer).write, timeout},
			{3 * time.Second, (*peer).write, timeout + time.Second},
			{4500 * time.Millisecond, (*peer).write, timeout + 2500*time.Millisecond},
		}},
		{"a sync proves nothing: a leader answers it without a quorum", []step{
			{time.Second, (*peer).read, greeted},
			{3 * time.Second, (*peer).sync, greeted},
		}},
		{"an answer counts from when the request was sent", []step{
			{time.Second, (*peer).ping, greeted},
			{2 * time.Second, (*peer).writeUnanswered, greeted},
			{5 * time.Second, (*peer).answer, timeout},
		}},
		{"a contact that may have arrived together with the proof is not proven by it", []step{
			{time.Second, func(p *peer) { p.early = p.request(proto.OpExists) }, greeted},
			{3500 * time.Millisecond, func(p *peer) {
				late := p.request(proto.OpSetData)
				p.respond(p.early, 0)
				p.respond(late, 0)
			}, timeout},
			{5500 * time.Millisecond, (*peer).write, timeout + 3500*time.Millisecond},
		}},
		{"a credential is no contact: a server takes it without touching the session", []step{
			{time.Second, func(p *peer) { p.respond(p.request(proto.OpAuth), 0) }, greeted},
			{4 * time.Second, (*peer).write, timeout},
		}},
		{"one that says that the session has expired proves nothing", []step{
			{time.Second, (*peer).ping, greeted},
			{4 * time.Second, (*peer).writeExpired, greeted},
		}},
		{"a handshake that resumes the session counts once there is a proof", []step{
			{time.Second, (*peer).ping, greeted},
			{2 * time.Second, (*peer).reconnect, greeted},
			{2500 * time.Millisecond, (*peer).sync, greeted},
			{2600 * time.Millisecond, (*peer).writeThrottled, greeted},
			{3 * time.Second, (*peer).write, greeted + 2*time.Second},
			{4 * time.Second, (*peer).write, timeout + 2*time.Second},
			{5 * time.Second, (*peer).write, timeout + 3*time.Second},
		}},
		{"of contacts close together the first stands for all", []step{
			{time.Second, (*peer).ping, greeted},
			{time.Second + 200*time.Millisecond, (*peer).ping, greeted},
			{4 * time.Second, (*peer).write, timeout + time.Second},
		}},
	} {
		runSynctest(t, tc.name, func(t *testing.T) {
			start := time.Now()
			p := newPeer(t)
			for _, s := range tc.steps {
				<-time.After(time.Until(start.Add(s.at)))
				s.do(p)
				if got := p.wire.Status().Deadline.Sub(start); got != s.want {
					t.Errorf("at %v the deadline is %v after the handshake, want %v", s.at, got, s.want)
				}
			}
		})
	}
}

func TestDeadline_is_presumed_from_any_server(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := newPeer(t)
		<-time.After(3 * time.Second)
		p.ping()
		if got := p.wire.Status().Presumed.Sub(start); got != timeout+3*time.Second {
			t.Errorf("presumed until %v after the handshake", got)
		}
		<-time.After(time.Second)
		p.writeUnanswered()
		if since := p.wire.Status().Waiting; since.Sub(start) != 4*time.Second {
			t.Errorf("oldest unanswered sent at %v", since.Sub(start))
		}
		if got := p.wire.Status().Sent.Sub(start); got != 4*time.Second {
			t.Errorf("the latest request was sent at %v", got)
		}
		if got := p.wire.Status().Proven; !got.Equal(start) {
			t.Errorf("a write that is not answered is taken for a proof, %v after the handshake", got.Sub(start))
		}
		p.answer()
		wantAllAnswered(t, p.wire)
		if got := p.wire.Status().Proven.Sub(start); got != 4*time.Second {
			t.Errorf("proven at %v, want when the write was sent", got)
		}
	})
}

// Whatever arrives, and when a connection ends, what is presumed becomes no earlier.
func TestPresumedIsMonotonic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		latest := p.wire.Status().Presumed
		event := func() { p.reply(words(-1, 0, 1, 0, 1, 3, "/a")) }
		end := func() { p.wire.CloseConn(errTest); synctest.Wait() }
		for i, step := range []func(){p.ping, event, end, p.reconnect, event, p.writeUnanswered, event, p.answer, p.writeUnanswered, event, end} {
			<-time.After(time.Second)
			step()
			if now := p.wire.Status().Presumed; now.Before(latest) {
				t.Errorf("step %d: what is presumed went back by %v", i, latest.Sub(now))
			} else {
				latest = now
			}
		}
	})
}

// A client keeps no more contacts than it can still use: those of a margin if it writes, and those of a session's timeout
// if it only reads for a day.
func TestContactsAreForgotten(t *testing.T) {
	const gap = 300 * time.Millisecond
	for name, tc := range map[string]struct {
		do   func(*peer)
		n    int
		last time.Duration
	}{
		"proven by an answer":    {(*peer).write, 30, margin},
		"they can prove nothing": {(*peer).read, 10_000, timeout},
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			for range tc.n {
				<-time.After(gap)
				tc.do(p)
			}
			if n, most := wire.Contacts(p.wire), int(tc.last/gap)+1; n > most {
				t.Errorf("%d contacts are kept, want at most %d", n, most)
			}
			<-time.After(time.Second)
			p.write()
			if left := time.Until(p.wire.Status().Deadline); left < timeout-margin-time.Second || left > timeout-margin {
				t.Errorf("the deadline is %v away", left)
			}
		})
	}
}
