package zkserver_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestObserverSeesEveryDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []zkserver.Transaction
		srv := zkserver.Run(t, zkserver.WithObserver(func(x zkserver.Transaction) { seen = append(seen, x) }))
		c, dying := connect(t, srv), connect(t, srv)
		c.node(t, "/a", 0)
		dying.node(t, "/e", 1)
		c.fails(t, errNodeExists, create, "/a", []byte("x"), open(), 0)
		c.do(t, setData, "/a", []byte("new"), -1)
		c.do(t, del, "/a", -1)
		must.OK(t, srv.Expire(dying.session))
		c.do(t, closeSession)
		synctest.Wait()
		got := func(i int) zkserver.Change {
			if i >= len(seen) || len(seen[i].Changes) != 1 {
				t.Fatalf("transaction %d of %+v: want one with one change", i, seen)
			}
			return seen[i].Changes[0]
		}
		if len(seen) != 9 || seen[0].Began != c.session || seen[1].Began != dying.session {
			t.Fatalf("got %+v, want 9 transactions, the first two of which begin sessions", seen)
		}
		if x := got(2); x.Kind != zkserver.Created || x.Path != "/a" || string(x.Data) != "x" || x.Owner != 0 {
			t.Errorf("got %+v, want the creation of /a", x)
		}
		if x := got(3); x.Kind != zkserver.Created || x.Path != "/e" || x.Owner != dying.session {
			t.Errorf("got %+v, want the creation of the ephemeral /e", x)
		}
		if len(seen[4].Changes) != 0 {
			t.Errorf("got %+v, want a refusal", seen[4])
		}
		if x := got(5); x.Kind != zkserver.DataSet || string(x.Data) != "new" {
			t.Errorf("got %+v, want the new data", x)
		}
		if x := got(6); x.Kind != zkserver.Deleted || x.Path != "/a" {
			t.Errorf("got %+v, want the deletion of /a", x)
		}
		if x := got(7); x.Path != "/e" || seen[7].Ended != dying.session || seen[7].ByClient {
			t.Errorf("got %+v, want the end of a session with its node", seen[7])
		}
		if x := seen[8]; x.Ended != c.session || !x.ByClient {
			t.Errorf("got %+v, want the end of a session by its client", x)
		}
		if !slices.IsSortedFunc(seen, func(a, b zkserver.Transaction) int { return int(a.Zxid - b.Zxid) }) {
			t.Errorf("zxids out of order: %+v", seen)
		}
	})
}

func TestShiftClockMovesTimesAndAgesNodes(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		c.do(t, createTTL, "/ttl", []byte(nil), open(), 5, ttl(time.Hour))
		c.idle(t, 2*time.Second)
		srv.ShiftClock(-2 * time.Hour)
		c.idle(t, 2*time.Second)
		if !c.has(t, "/ttl") {
			t.Fatal("a TTL node is gone although the clock went back")
		}
		srv.ShiftClock(3*time.Hour + time.Minute)
		c.idle(t, 2*time.Second)
		if c.has(t, "/ttl") {
			t.Error("a TTL node stands although by the server's clock its time is over")
		}
		if len(srv.Sessions()) != 1 {
			t.Error("the session has ended by a clock that it is not counted by")
		}
	}, zkserver.WithReapInterval(time.Second))
}
