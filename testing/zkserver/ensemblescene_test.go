package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// long is a timeout that no session in a scene reaches.
const long = 45 * time.Second

// An isolated leader answers what takes no quorum and nothing else, after its sessions
// have expired at its successor too, until its time is over. Both ensembles do so. It is the hole in every lease clock
// that takes a sync for a proof.
func TestIsolatedLeaderOfBothEnsembles(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { playIsolatedLeader(t, runEmbedded(t)) })
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		playIsolatedLeader(t, runReal(t))
	})
}

func playIsolatedLeader(t *testing.T, e ensemble) {
	t.Helper()
	leader := e.leader(t)
	other := (leader + 1) % members
	holder := openAt(t, e, leader, 4*ticks, nil)
	writer, checker, moving := openAt(t, e, leader, long, nil), openAt(t, e, leader, long, nil), openAt(t, e, other, long, nil)
	left := openAt(t, e, leader, long, nil)
	holder.node(t, "/lock", 1)
	e.isolate(t, leader)
	isolated := time.Now()
	holder.do(t, syncOp, "/")
	writer.send(create, "/lost", []byte(nil), open(), 0)
	checker.send(multi, []sub{{check, body("/none", 0)}})
	left.send(create, "/lost-too", []byte(nil), open(), 0)
	resumed := openAt(t, e, leader, long, moving)
	if resumed.session != moving.session {
		t.Errorf("resumed as session %#x, want %#x", resumed.session, moving.session)
	}
	resumed.do(t, syncOp, "/")
	<-time.After(ticks / 5) // left's request has arrived
	left.nc.Close()
	back := must.Get(handshake(dialAt(t, e, leader), long, 0, left.session, left.password))(t)
	back.send(syncOp, "/") // it waits for what the session has sent by another connection
	nc := dialAt(t, e, leader)
	go handshake(nc, long, 0, 0, nil) // ends with the connection: no server answers

	elected := make(chan error, 1)
	go func() { elected <- e.elect(t, leader) }() // the next receive waits for it
	for waiting := true; waiting; {
		select {
		case err := <-elected:
			if err != nil {
				t.Fatal(err)
			}
			waiting = false
		case <-time.After(ticks / 5):
			holder.do(t, syncOp, "/")
		}
	}
	watcher := openAt(t, e, other, long, nil)
	for watcher.has(t, "/lock") {
		holder.do(t, syncOp, "/")
		<-time.After(ticks / 5)
	}
	holder.do(t, syncOp, "/")
	if !holder.has(t, "/lock") {
		t.Error("the isolated leader has heard of its successor's decisions")
	}
	writer.silent(t, time.Millisecond)
	checker.silent(t, time.Millisecond)
	back.silent(t, time.Millisecond)
	writer.closed(t)
	least, most := time.Duration(0), (syncTicks+1)*ticks
	if _, exact := e.(embedded); exact {
		least = most
	} else {
		most += 5 * time.Second
	}
	if took := time.Since(isolated); took < least || took > most {
		t.Errorf("the leader stepped down after %v, want %v to %v", took, least, most)
	}
	e.heal(t, leader)
	playReturn(t, e, leader, holder)
}

// playReturn has the leader of before come back as a follower.
func playReturn(t *testing.T, e ensemble, old int, holder *client) {
	t.Helper()
	var again *client
	for deadline := time.Now().Add(time.Minute); again == nil && time.Now().Before(deadline); <-time.After(ticks / 5) {
		if nc, err := e.dial(old); err == nil {
			t.Cleanup(func() { nc.Close() })
			nc.SetDeadline(deadline)
			again, _ = handshake(nc, long, 0, holder.session, holder.password)
		}
	}
	if again == nil || again.session != 0 {
		t.Fatalf("resumed as %+v, want a refusal: its session has expired", again)
	}
	fresh := openAt(t, e, old, long, nil)
	if fresh.has(t, "/lock") || fresh.has(t, "/lost") {
		t.Error("the leader of before has kept its own state")
	}
}

// TestEnsembles compares both ensembles in three scenes. They are the connection that a session
// has moved away from, the end of the sequence numbers, and all that is between these.
func TestEnsembles(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { playEnd(t, runEmbedded(t)) })
		synctest.Test(t, func(t *testing.T) { playMoves(t, runEmbedded(t)) })
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		e := runReal(t)
		playEnd(t, e)
		playMoves(t, e)
		if *ensembleOps > 0 {
			fake := runEmbedded(t, zkserver.WithVersion(must.Get(zktest.Version())(t)))
			playEnd(t, fake)
			compareEnsembles(t, fake, e, *ensembleOps)
		}
	})
}

// playEnd brings a counter past its end: creations that are outstanding together, as a
// leader without a quorum can't commit them, get other numbers than later ones.
func playEnd(t *testing.T, e ensemble) {
	t.Helper()
	leader := e.leader(t)
	c := openAt(t, e, leader, long, nil)
	e.isolate(t, leader)
	for range 4 {
		c.send(create, endPath+"/n", []byte(nil), open(), 2)
	}
	c.silent(t, ticks)
	e.heal(t, leader)
	must.OK(t, c.nc.SetDeadline(time.Now().Add(time.Minute)))
	for _, want := range []string{"2147483646", "2147483647", "-2147483648", "-2147483647"} {
		got, err := c.receive()
		if err != nil || got.err != 0 || string(got.body[4:]) != endPath+"/n"+want {
			t.Errorf("got error %d %q, %v, want number %s", got.err, got.body, err, want)
		}
	}
	for range 2 {
		c.fails(t, errNodeExists, create, endPath+"/n", []byte(nil), open(), 2)
	}
	c.do(t, del, endPath+"/n2147483647", -1)
	if got, want := c.node(t, endPath+"/n", 2), endPath+"/n2147483647"; got != want {
		t.Errorf("later creation: %s, want %s", got, want)
	}
}

// moves are requests by a connection whose session has moved away, and whether followers
// and leaders answer them.
var moves = []struct {
	name             string
	op               int32
	fields           []any
	follower, leader bool
}{
	{"write", create, []any{"/moved", []byte(nil), open(), 0}, false, false},
	{"write that fails", del, []any{"/none", -1}, false, false},
	{"transaction", multi, []any{[]sub{{create, body("/moved", []byte(nil), open(), 0)}}}, false, false},
	{"sync", syncOp, []any{"/"}, true, false},
	{"read", exists, []any{"/", false}, true, false},
	{"ping", ping, nil, true, false},
	{"end of the session", closeSession, nil, true, true},
}

func playMoves(t *testing.T, e ensemble) {
	t.Helper()
	leader := e.leader(t)
	for _, tt := range moves {
		for _, at := range []string{"follower", "leader"} {
			was, is, answered := (leader+1)%members, leader, tt.follower
			if at == "leader" {
				was, is, answered = is, was, tt.leader
			}
			old := openAt(t, e, was, long, nil)
			moved := openAt(t, e, is, long, old)
			if moved.session != old.session {
				t.Fatalf("resumed as session %#x, want %#x", moved.session, old.session)
			}
			old.send(tt.op, tt.fields...)
			got, err := old.receive()
			if answered != (err == nil) || got.err != 0 {
				t.Errorf("%s at the %s: answer %+v, %v; want one: %v", tt.name, at, got, err, answered)
			}
			if !answered || tt.op == closeSession {
				old.closed(t)
			}
			if tt.op == closeSession {
				moved.closed(t)
			} else if moved.do(t, syncOp, "/"); moved.has(t, "/moved") {
				t.Errorf("%s at the %s was carried out", tt.name, at)
			}
		}
	}
}
