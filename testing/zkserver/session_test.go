package zkserver_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestSessionExpiresExactlyAtItsTimeout(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		watcher, dying := connect(t, srv), connect(t, srv)
		dying.node(t, "/dying", 1)
		watcher.do(t, exists, "/dying", true)
		pass(T / 2)
		dying.do(t, ping) // the last sign of life
		latest := time.Now()
		watcher.idle(t, T-time.Nanosecond)
		if !watcher.has(t, "/dying") {
			t.Fatalf("the node is gone %v before the session's end", time.Nanosecond)
		}
		watcher.event(t, 2, "/dying")
		if got := time.Since(latest); got != T {
			t.Errorf("the session ended after %v, want %v", got, T)
		}
		dying.closed(t)
	})
}

func TestSessionIsKeptAliveByAnyRequest(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		for range 5 {
			pass(T - time.Nanosecond)
			c.do(t, getData, "/", false)
		}
	})
}

func TestSessionResumes(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		other, c := connect(t, srv), connect(t, srv)
		c.node(t, "/mine", 1)
		seen := c.call(t, exists, "/mine", true).zxid
		other.node(t, "/missed", 0)
		again := resumeOn(t, srv, 0, c)
		if again.session != c.session || again.timeout != T {
			t.Errorf("resumed session %#x for %v as %#x for %v", c.session, T, again.session, again.timeout)
		}
		c.closed(t)
		must.Get(again.send(setWatches, seen, []string{"/mine"}, []string{"/missed"}, []string{}))(t)
		again.event(t, 1, "/missed")
		again.succeeds(t)
		if !again.has(t, "/mine") {
			t.Error("the ephemeral node is gone")
		}
		other.do(t, setData, "/mine", []byte("new"), -1)
		again.event(t, 3, "/mine")
	})
}

func TestAuthenticationThatFailsEndsTheConnection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		began := time.Now()
		c.fails(t, int32(proto.CodeAuthFailed), auth, 0, "nosuch", []byte("x"))
		c.closed(t)
		if took := time.Since(began); took != 0 {
			t.Errorf("the connection ended after %v, want at once", took)
		}
	})
}

func TestSessionIsNotResumedBy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(srv *zkserver.Server, c *client){
		"a stranger to its password":     func(_ *zkserver.Server, c *client) { c.password = make([]byte, 16) },
		"a password of another length":   func(_ *zkserver.Server, c *client) { c.password = c.password[:4] },
		"an id that nobody has":          func(_ *zkserver.Server, c *client) { c.session++ },
		"its client once it has expired": func(srv *zkserver.Server, c *client) { srv.Expire(c.session) },
	} {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := connect(t, srv)
			change(srv, c)
			again := resumeOn(t, srv, 0, c)
			if again.session != 0 || again.timeout != 0 {
				t.Errorf("got session %#x for %v, want a refusal", again.session, again.timeout)
			}
			again.closed(t)
		})
	}
}

func TestClientThatHasSeenMoreIsTurnedAway(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		if _, err := handshake(dial(t, srv, ""), T, 1, 0, nil); err == nil {
			t.Error("a client that has seen zxid 1 was let in at zxid 0")
		}
	})
}

func TestSessionTimeoutIsNegotiated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		opts        []zkserver.Option
		asked, want time.Duration
	}{
		{"what is asked for is granted within the bounds", nil, 10 * time.Second, 10 * time.Second},
		{"the least is two ticks", nil, time.Millisecond, 4 * time.Second},
		{"the most is twenty ticks", nil, time.Hour, 40 * time.Second},
		{"the bounds follow the tick", []zkserver.Option{zkserver.WithTick(time.Second)}, time.Hour, 20 * time.Second},
		{"the bounds can be set", []zkserver.Option{zkserver.WithSessionTimeouts(time.Second, time.Minute)}, time.Hour, time.Minute},
		{"a negative timeout gets the least", nil, -time.Second, 4 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := zkserver.Run(t, tt.opts...)
			c := must.Get(handshake(dial(t, srv, ""), tt.asked, 0, 0, nil))(t)
			if c.timeout != tt.want {
				t.Errorf("asked for %v, got %v, want %v", tt.asked, c.timeout, tt.want)
			}
		})
	}
}

func TestWhatIsNotThereIsReported(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	for want, err := range map[string]error{
		"zkserver: expire session 0x7: zkserver: no such session":         srv.Expire(7),
		"zkserver: set next sequence of /nowhere: zkserver: no such node": srv.SetNextSequence("/nowhere", 1),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestFrozenServer_expires_sessions_when_thawed(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		c.node(t, "/mine", 1)
		srv.Freeze()
		pass(10 * T)
		if got := len(srv.Sessions()); got != 1 {
			t.Fatalf("%d sessions while frozen, want 1", got)
		}
		srv.Thaw()
		if got := len(srv.Sessions()); got != 0 {
			t.Errorf("%d sessions after the thaw, want 0", got)
		}
	})
}

func TestElectionBeginsAnEpochAndRenewsSessions(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		if got := srv.Frontend(2).Zxid(); got != 1<<32+1 {
			t.Errorf("zxid %#x after the first session, want %#x", got, int64(1)<<32+1)
		}
		pass(T - time.Second)
		srv.Elect()
		c.closed(t)
		if got := srv.Frontend(1).Zxid(); got != 2<<32 {
			t.Errorf("zxid %#x after an election, want %#x", got, int64(2)<<32)
		}
		pass(T - time.Second)
		resumeOn(t, srv, 1, c)
		if got := len(srv.Sessions()); got != 1 {
			t.Errorf("%d sessions, want 1", got)
		}
	}, zkserver.WithFrontends(3))
}

// The events of a session's end come in no order that a client could rely on, and in the same for
// the same seed.
func TestSessionEndOrderFollowsSeed(t *testing.T) {
	t.Parallel()
	first := map[string]bool{}
	for seed := range uint64(20) {
		orders := [2][]string{endOrder(t, seed), endOrder(t, seed)}
		if !slices.Equal(orders[0], orders[1]) {
			t.Errorf("seed %d gives %v and then %v", seed, orders[0], orders[1])
		}
		first[orders[0][0]] = true
	}
	if len(first) < 3 {
		t.Errorf("with 20 seeds, the first of 5 events is always one of %v", first)
	}
}

// endOrder returns the paths of a session's nodes in the order in which a watcher is notified of
// their end.
func endOrder(t *testing.T, seed uint64) (order []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithSeed(seed))
		watcher, dying := connect(t, srv), connect(t, srv)
		for i := range 5 {
			watcher.do(t, exists, dying.node(t, fmt.Sprintf("/%d", i), 1), true)
		}
		must.OK(t, srv.Expire(dying.session))
		for range 5 {
			got := must.Get(watcher.receive())(t)
			order = append(order, string(got.body[12:]))
		}
	})
	return order
}
