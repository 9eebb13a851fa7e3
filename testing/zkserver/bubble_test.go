package zkserver_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// A day of pings takes no time to speak of, and the session ends when it should.
func TestGoZooKeeperIdlesForADay(t *testing.T) {
	if testing.Short() {
		t.Skip("-short")
	}
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		conn, _ := goZK(t, srv)
		must.Get(conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))(t)
		pass(24 * time.Hour)
		if ok, _, err := conn.Exists("/e"); !ok || err != nil {
			t.Fatalf("after a day: %v, %v", ok, err)
		}
		last := time.Now()
		srv.Refuse()
		srv.Cut()
		pass(T - time.Nanosecond)
		if got := len(srv.Sessions()); got != 1 {
			t.Fatalf("%d sessions %v after the last request, want 1", got, time.Since(last))
		}
		pass(time.Nanosecond)
		if got := len(srv.Sessions()); got != 0 {
			t.Errorf("%d sessions %v after the last request, want 0", got, time.Since(last))
		}
	})
	t.Logf("24 hours took %v", time.Since(began))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("24 hours took %v", took)
	}
}

func TestGoZooKeeperWorksOverPipesAndTCP(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"over pipes in a bubble", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, _ := goZK(t, zkserver.Run(t))
				exercise(t, conn)
			})
		}},
		{"over pipes in a bubble with its own resolver", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				conn, _ := must.Get2(zk.Connect([]string{srv.Addr()}, T, zk.WithDialer(srv.Dialer()), zk.WithLogger(quiet{})))(t)
				t.Cleanup(conn.Close)
				exercise(t, conn)
			})
		}},
		{"over pipes outside", func(t *testing.T) {
			conn, _ := goZK(t, zkserver.Run(t))
			exercise(t, conn)
		}},
		{"over TCP", func(t *testing.T) {
			addr := must.Get(zkserver.Run(t).Listen("127.0.0.1:0"))(t)
			conn, _ := must.Get2(zk.Connect([]string{addr}, T, zk.WithLogger(quiet{})))(t)
			t.Cleanup(conn.Close)
			exercise(t, conn)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t)
		})
	}
}

// exercise does with a client what recipes do.
func exercise(t *testing.T, conn *zk.Conn) {
	t.Helper()
	acl := zk.WorldACL(zk.PermAll)
	must.Get(conn.CreateContainer("/locks", nil, zk.FlagContainer, acl))(t)
	first := must.Get(conn.CreateProtectedEphemeralSequential("/locks/lock-", []byte("a"), acl))(t)
	must.Get(conn.CreateProtectedEphemeralSequential("/locks/lock-", []byte("b"), acl))(t)
	_, stat, gone, err := conn.GetW(first)
	if err != nil || stat.EphemeralOwner != conn.SessionID() {
		t.Fatalf("owner %#x, session %#x, error %v", stat.EphemeralOwner, conn.SessionID(), err)
	}
	if _, err := conn.Multi(&zk.DeleteRequest{Path: first, Version: 7}); !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("multi: %v, want %v", err, zk.ErrBadVersion)
	}
	must.OK(t, conn.Delete(first, 0))
	if ev := <-gone; ev.Type != zk.EventNodeDeleted {
		t.Errorf("event %v, want a deletion", ev)
	}
	children, parent, err := conn.Children("/locks")
	if err != nil || len(children) != 1 || parent.Cversion != 3 || parent.NumChildren != 1 {
		t.Errorf("children %v, parent %+v, error %v", children, parent, err)
	}
	if _, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, acl, time.Hour); err != nil {
		t.Error(err)
	}
}

func TestGoZooKeeperReconnectsToAnotherFrontend(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		conn, _ := goZK(t, srv)
		must.Get(conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))(t)
		_, _, changed, err := conn.GetW("/e")
		if err != nil {
			t.Fatal(err)
		}
		session := conn.SessionID()
		for range 4 {
			srv.Cut()
			pass(3 * time.Second)
		}
		if conn.SessionID() != session {
			t.Errorf("session %#x became %#x", session, conn.SessionID())
		}
		must.Get(conn.Set("/e", []byte("new"), -1))(t)
		if ev := <-changed; ev.Type != zk.EventNodeDataChanged {
			t.Errorf("event %v, want a change of data", ev)
		}
	}, zkserver.WithFrontends(3))
}
