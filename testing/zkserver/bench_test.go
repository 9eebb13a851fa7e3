package zkserver_test

import (
	"context"
	"net"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// BenchmarkLockCycle is what an uncontended lock costs its server: create, list,
// delete, one after the other.
func BenchmarkLockCycle(b *testing.B) {
	b.Run("pipe", func(b *testing.B) {
		srv := zkserver.Run(b)
		lockCycles(b, func() (net.Conn, error) { return srv.Dial(context.Background(), "", "") })
	})
	b.Run("TCP", func(b *testing.B) {
		addr := must.Get(zkserver.Run(b).Listen("127.0.0.1:0"))(b)
		lockCycles(b, func() (net.Conn, error) { return net.Dial("tcp", addr) })
	})
	b.Run("ZooKeeper", func(b *testing.B) {
		addr := zktest.Shared(b).Addr()
		lockCycles(b, func() (net.Conn, error) { return net.Dial("tcp", addr) })
	})
}

func lockCycles(b *testing.B, dial func() (net.Conn, error)) {
	b.Helper()
	nc := must.Get(dial())(b)
	defer nc.Close()
	c := must.Get(handshake(nc, T, 0, 0, nil))(b)
	c.node(b, "/bench", 0)
	for b.Loop() {
		path := c.node(b, "/bench/lock-", 3)
		c.do(b, getChildren, "/bench", false)
		c.do(b, del, path, -1)
	}
	c.do(b, del, "/bench", -1)
}
