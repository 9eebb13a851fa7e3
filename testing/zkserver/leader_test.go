package zkserver_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// limit is for how long a front end goes on without its leader, in these tests.
const limit = zkserver.DefaultSyncLimit * zkserver.DefaultTick

// led returns the options of an ensemble of three whose front end 0 leads, and opts.
func led(opts ...zkserver.Option) []zkserver.Option {
	return append([]zkserver.Option{zkserver.WithFrontends(3), zkserver.WithLeader(0)}, opts...)
}

// unanswered sends a request and expects no answer for d.
func (c *client) unanswered(t *testing.T, d time.Duration, op int32, fields ...any) {
	t.Helper()
	must.Get(c.send(op, fields...))(t)
	c.silent(t, d)
}

func TestFollowersElectLeaderAfterSyncLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		harm func(*zkserver.Frontend)
	}{{"isolated", (*zkserver.Frontend).Isolate}, {"frozen", (*zkserver.Frontend).Freeze}} {
		virtualSubtest(t, tt.name, func(t *testing.T, srv *zkserver.Server) {
			c := connectTo(t, srv, 1)
			c.node(t, "/e", 1)
			began := time.Now()
			tt.harm(srv.Frontend(0))
			c.unanswered(t, time.Second, syncOp, "/")
			c.closed(t)
			synctest.Wait() // the election ends at the same instant
			if got := time.Since(began); got != limit || srv.Leader() != srv.Frontend(1) {
				t.Fatalf("after %v, leader %v; want front end 1 after %v", got, srv.Leader(), limit)
			}
			pass(T - time.Millisecond)
			again := resumeOn(t, srv, 2, c)
			if again.session != c.session || !again.has(t, "/e") {
				t.Errorf("resumed as %+v, want the same session", again)
			}
			again.node(t, "/b", 0)
		}, led()...)
	}
}

func TestThawedLeaderStepsDownAfterTick(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connectTo(t, srv, 0)
		srv.Frontend(0).Freeze()
		pass(time.Minute)
		if err := srv.Expire(c.session); !errors.Is(err, zkserver.ErrNoSession) {
			t.Fatalf("got %v, want a session that has expired", err)
		}
		c.send(syncOp, "/")
		srv.Frontend(0).Thaw()
		c.silent(t, zkserver.DefaultTick-1) // its session is one that this leader would end
		c.closed(t)
		if !connectTo(t, srv, 0).has(t, "/") {
			t.Error("the leader of before doesn't follow")
		}
	}, led(zkserver.WithSyncLimit(1))...)
}

func TestLeaderWithoutMajorityStepsDown(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, f := connectTo(t, srv, 0), connectTo(t, srv, 2)
		srv.Frontend(1).Isolate()
		c.node(t, "/one", 0)
		pass(time.Second)
		c.do(t, ping)
		srv.Frontend(2).Isolate()
		c.unanswered(t, time.Second, create, "/two", []byte(nil), open(), 0)
		f.unanswered(t, time.Second, syncOp, "/")
		pass(limit + zkserver.DefaultTick)
		c.closed(t)
		f.closed(t)
		if srv.Leader() != nil || srv.Frontend(0).Zxid() != srv.Frontend(2).Zxid() {
			t.Errorf("leader %v: nobody can have been elected", srv.Leader())
		}
		if _, err := srv.Dial(t.Context(), "tcp", srv.Frontend(0).Addr()); err == nil {
			t.Error("a server without a leader takes connections")
		}
		if err := srv.Expire(c.session); !errors.Is(err, zkserver.ErrNoQuorum) {
			t.Errorf("expire: %v, want %v", err, zkserver.ErrNoQuorum)
		}
		srv.Elect()
		if srv.Leader() != nil {
			t.Errorf("leader %v was elected by less than a majority", srv.Leader())
		}
		pass(time.Hour)
		srv.Frontend(1).Heal()
		again := resumeOn(t, srv, 1, c)
		if again.session != c.session {
			t.Fatalf("resumed as %+v, want the session that nobody could end", again)
		}
		if !again.has(t, "/one") || again.has(t, "/two") {
			t.Error("want what was committed and nothing else")
		}
	}, led()...)
}

func TestDeposedLeaderLosesItsProposals(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, ending := connectTo(t, srv, 0), connectTo(t, srv, 0)
		ending.node(t, "/e", 1)
		c.send(create, "/lost", []byte(nil), open(), 0)
		ending.send(closeSession)
		fresh := dial(t, srv, srv.Frontend(0).Addr())
		go handshake(fresh, T, 0, 0, nil)
		synctest.Wait()
		srv.Frontend(0).Isolate()
		srv.Elect()
		pass(5 * time.Second)
		other := connectTo(t, srv, 1)
		if other.has(t, "/lost") || !other.has(t, "/e") || len(srv.Sessions()) != 3 {
			t.Errorf("nodes %v, sessions %v; want neither the creation nor the sessions' end and beginning", srv.Paths(), srv.Sessions())
		}
		c.closed(t)
		again := resumeOn(t, srv, 1, ending)
		if again.session != 0 {
			t.Errorf("resumed as %+v: its time was over long ago", again)
		}
	}, led(zkserver.WithCommitTime(time.Second))...)
}

func TestFrozenEnsembleKeepsItsLeader(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, late := connectTo(t, srv, 1), connectTo(t, srv, 2)
		late.node(t, "/e", 1)
		srv.Freeze()
		pass(T / 2)
		c.send(ping)
		srv.Thaw()
		must.Get(c.receive())(t)
		late.do(t, syncOp, "/")
		srv.Freeze()
		pass(time.Hour)
		srv.Thaw()
		late.closed(t)
		if srv.Leader() != srv.Frontend(0) || len(srv.Sessions()) != 0 {
			t.Errorf("leader %v, sessions %v; want the same leader and no session", srv.Leader(), srv.Sessions())
		}
		connectTo(t, srv, 2).node(t, "/b", 0)
	}, led()...)
}
