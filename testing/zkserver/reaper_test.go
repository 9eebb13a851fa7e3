package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zkserver"
)

// ttl is the TTL of a node, in the protocol's milliseconds.
func ttl(d time.Duration) int64 { return d.Milliseconds() }

func TestContainerGoesWithItsLastChild(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		c.do(t, createContainer, "/outer", []byte(nil), open(), 4)
		c.do(t, createContainer, "/outer/inner", []byte(nil), open(), 4)
		c.do(t, createContainer, "/fresh", []byte(nil), open(), 4)
		c.node(t, "/outer/inner/child", 0)
		c.idle(t, 90*time.Second)
		if !c.has(t, "/outer/inner") {
			t.Fatal("a container with a child is gone")
		}
		c.do(t, del, "/outer/inner/child", -1)
		c.idle(t, 30*time.Second-time.Nanosecond)
		if !c.has(t, "/outer/inner") {
			t.Fatal("a container is gone before the interval's end")
		}
		pass(time.Nanosecond)
		if c.has(t, "/outer/inner") {
			t.Error("an empty container stands at the interval's end")
		}
		if !c.has(t, "/outer") {
			t.Error("a container is gone in the round in which it has become empty")
		}
		c.idle(t, time.Minute)
		if c.has(t, "/outer") {
			t.Error("an empty container stands an interval later")
		}
		if !c.has(t, "/fresh") {
			t.Error("a container is gone that has never had a child")
		}
	})
}

func TestTTLNodeGoesWhenItIsNotChanged(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		c.do(t, createTTL, "/short", []byte(nil), open(), 5, ttl(1500*time.Millisecond))
		c.do(t, createTTL, "/parent", []byte(nil), open(), 5, ttl(time.Second))
		c.node(t, "/parent/child", 0)
		pass(time.Second)
		c.do(t, setData, "/short", []byte("touched"), -1)
		pass(time.Second)
		if !c.has(t, "/short") {
			t.Error("a TTL node is gone 1s after its last change, before its 1.5s")
		}
		pass(time.Second)
		if c.has(t, "/short") {
			t.Error("a TTL node stands 2s after its last change, past its 1.5s")
		}
		if !c.has(t, "/parent") {
			t.Error("a TTL node is gone that has a child")
		}
		c.do(t, del, "/parent/child", -1)
		pass(time.Second)
		if c.has(t, "/parent") {
			t.Error("an old TTL node stands after its last child has gone")
		}
	}, zkserver.WithReapInterval(time.Second))
}

// Outside a bubble two readings of the clock differ.
func TestContainerIsReapedInRealTime(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t, zkserver.WithReapInterval(10*time.Millisecond))
	c := connect(t, srv)
	c.do(t, createContainer, "/c", []byte(nil), open(), 4)
	c.node(t, "/c/child", 0)
	c.do(t, exists, "/c", true)
	c.do(t, del, "/c/child", -1)
	c.nc.SetReadDeadline(time.Now().Add(10 * time.Second))
	c.event(t, 2, "/c")
}
