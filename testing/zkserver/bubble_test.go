package zkserver_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestGoZooKeeperWorksOverPipesAndTCP(t *testing.T) {
	t.Parallel()
	overPipes := func(t *testing.T) {
		srv := zkserver.Run(t)
		exercise(t, srv.Addr(), zk.WithDialer(srv.Dialer()))
	}
	t.Run("over pipes in a bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, overPipes)
	})
	t.Run("over pipes outside", func(t *testing.T) {
		t.Parallel()
		overPipes(t)
	})
	t.Run("over TCP", func(t *testing.T) {
		t.Parallel()
		exercise(t, must.Get(zkserver.Run(t).Listen("127.0.0.1:0"))(t), zk.WithDialer(net.DialTimeout))
	})
}

// quiet is a logger for go-zookeeper.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// exercise does with a client what recipes do.
func exercise(t *testing.T, addr string, dialer func(*zk.Conn)) {
	t.Helper()
	conn, _ := must.Get2(zk.Connect([]string{addr}, T, dialer, zk.WithLogger(quiet{})))(t)
	t.Cleanup(conn.Close)
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
