package framework_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A malformedReply is what a server answers to the first request of an opcode.
type malformedReply struct {
	name   string
	opcode int32
	frame  func(xid int32) []byte // with its length
}

func malformedReplies() []malformedReply {
	reply := func(xid int32, values ...any) []byte { return frameOf(append(be(xid, int64(1), 0), be(values...)...)) }
	body := func(values ...any) func(int32) []byte {
		return func(xid int32) []byte { return reply(xid, values...) }
	}
	event := func(values ...any) func(int32) []byte {
		return func(int32) []byte { return reply(-1, values...) }
	}
	stat := be(int64(1), int64(1), int64(0), int64(0), 0, 0, 0, int64(0), 0, 0, int64(1))
	one := func(bytes ...any) []byte { return be(append(append([]any{4, byte(0), 0}, bytes...), stat)...) }
	end := be(-1, byte(1), -1)
	const exists, get, getACL, set, children, multi, create2, multiRead = 3, 4, 6, 5, 12, 14, 15, 22
	return []malformedReply{
		{"no byte", exists, func(int32) []byte { return frameOf(nil) }},
		{"the longest length", exists, func(int32) []byte { return be(int32(1<<31 - 1)) }},
		{"a request that was never sent", exists, func(xid int32) []byte { return reply(xid+1000, stat) }},
		{"a Stat that is cut short", exists, body(stat[:67])},
		{"no Stat", set, body()},
		{"a count of 2^32-1 children", children, body(-1)},
		{"a count beyond the frame", children, body(1<<28, 1, "a", stat)},
		{"a child's name beyond the frame", children, body(1, 100, "a", stat)},
		{"a child's name of negative length", children, body(1, -2, stat)},
		{"children without a Stat", children, body(1, 1, "a")},
		{"a count of 2^32-1 ACL entries", getACL, body(-1, stat)},
		{"an ACL entry that is cut short", getACL, body(1, 31, 5, "world", 60, "anyone")},
		{"data beyond the frame", get, body(1<<30, "ok", stat)},
		{"data of length -2", get, body(-2, stat)},
		{"a created path beyond the frame", create2, body(1<<20, "/a")},
		{"a created path without a Stat", create2, body(2, "/a")},
		{"a transaction without an end", multi, body()},
		{"a transaction's result that is cut short", multi, body(5, byte(0), 0, stat[:10])},
		{"a transaction without results, on a connection that goes on", multi, body(end)},
		{"a transaction's result of no kind", multi, body(99, byte(0), 0, -1, byte(1), -1)},
		{"a transaction that ends in a head", multi, body(2, byte(0), 0, -1)},
		{"an event without a path", exists, event(1, 3, 0)},
		{"an event of a path that ends in a slash", exists, event(3, 3, 3, "/a/")},
		{"an event of a path with an empty element", exists, event(3, 3, 5, "/a//b")},
		{"a child without a name", children, body(1, 0, stat)},
		{"a child's name with a slash", children, body(1, 3, "a/b", stat)},
		{"no reads", multiRead, body()},
		{"reads without an end", multiRead, body(one(1, "a"), one(1, "b"))},
		{"a read too few", multiRead, body(one(1, "a"), end)},
		{"a read too many", multiRead, body(one(1, "a"), one(1, "b"), one(1, "c"), end)},
		{"another read", multiRead, body(one(1, "a"), be(8, byte(0), 0, 0), end)},
		{"a read's Stat cut short", multiRead, body(one(1, "a"), be(4, byte(0), 0, 1, "b", stat[:60]))},
		{"a read's data beyond the end", multiRead, body(one(1, "a"), be(4, byte(0), 0, 1<<30))},
		{"bytes after the reads", multiRead, body(one(1, "a"), one(1, "b"), end, []byte{0})},
	}
}

func frameOf(body []byte) []byte { return append(be(int32(len(body))), body...) }

// be encodes numbers as the protocol does: an int32, an int64. It leaves a string unchanged.
func be(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case byte:
			b = append(b, v)
		case string:
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

// A liar has the client read a malformed reply to the first request of its opcode, and what the server sends else.
type liar struct {
	malformedReply
	told atomic.Bool
}

func (l *liar) dialer(srv *zkserver.Server) framework.Option {
	return framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := srv.Dial(ctx, network, addr)
		return &lyingConn{Conn: conn, liar: l}, err
	})
}

type lyingConn struct {
	net.Conn
	*liar
	xid    atomic.Int32 // of that request
	unread []byte
}

func (c *lyingConn) Write(p []byte) (int, error) {
	for _, request := range requestsOf(p) {
		if int32(binary.BigEndian.Uint32(request[8:])) == c.opcode && c.told.CompareAndSwap(false, true) {
			c.xid.Store(int32(binary.BigEndian.Uint32(request[4:])))
		}
	}
	return c.Conn.Write(p)
}

func (c *lyingConn) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		body, err := proto.ReadFrame(c.Conn, 1<<20)
		if err != nil {
			return 0, err
		}
		c.unread = frameOf(body)
		if xid := c.xid.Load(); xid != 0 && int32(binary.BigEndian.Uint32(body)) == xid {
			c.unread = c.frame(xid)
		}
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// Each of these once ended the process, or was taken for a request that had not been sent.
func TestAMalformedReply(t *testing.T) {
	kinds := map[int32]string{3: "Exists", 4: "Get", 5: "Set", 6: "ACL", 12: "Children", 14: "Txn", 15: "Create", 22: "GetEach"}
	for _, tc := range malformedReplies() {
		runVirtually(t, tc.name, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			lie := &liar{malformedReply: tc}
			mustCreate(t, virtual(t, srv), "/a", "ok")
			c := virtual(t, srv, framework.WithRetry(retry.Never()), framework.WithStateListener(seen.add), lie.dialer(srv))
			if tc.opcode == 22 {
				must.Get2(c.Get(t.Context(), "/a"))(t) // shows how long the data are
			}
			err := requestKinds()[kinds[tc.opcode]](t.Context(), c)
			wantErr(t, "the request", err, framework.ErrUnknownOutcome)
			if errors.Is(err, framework.ErrTooLarge) {
				t.Errorf("%v: it was sent", err)
			}
			if !strings.HasSuffix(tc.name, "a connection that goes on") {
				seen.await(t, connecting, connected, suspended, connected)
			}
			wantExists(t, c, "/a", true)
		})
	}
}

// oversized makes a directory whose listing is longer than a client of the least packets
// reads, and a znode whose data is.
func oversized(t *testing.T, srv *zkserver.Server) (dir, node string) {
	t.Helper()
	c := virtual(t, srv)
	dir, node = fresh(t), fresh(t)
	mustCreate(t, c, node, strings.Repeat("x", framework.MinPacket))
	mustCreate(t, c, dir, "")
	for n := range 50 {
		mustCreate(t, c, fmt.Sprintf("%s/%s-%d", dir, strings.Repeat("n", 100), n), "")
	}
	return dir, node
}

func small(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return virtual(t, srv, append(opts, framework.WithMaxPacket(framework.DefaultMaxRequest, framework.MinPacket))...)
}

func TestOversizedReply_keeps_the_connection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		dir, node := oversized(t, srv)
		var seen trail
		retries := 0
		c := small(t, srv, framework.WithStateListener(seen.add), framework.WithRetry(notingPolicy{Policy: retry.Times(3, 0), note: func() { retries++ }}))
		seen.await(t, connecting, connected)
		others := make(chan error, 1)
		go func() {
			for range 100 {
				if _, _, err := c.Exists(t.Context(), "/"); err != nil {
					others <- err
					return
				}
			}
			others <- nil
		}()
		wantErr(t, "Get", last(c.Get(t.Context(), node)), framework.ErrTooLarge)
		wantErr(t, "Children", last(c.Children(t.Context(), dir)), framework.ErrTooLarge)
		_, err := c.Watch(t.Context(), dir, framework.WatchChildren)
		wantErr(t, "Watch", err, framework.ErrTooLarge)
		wantErr(t, "DeleteTree", c.DeleteTree(t.Context(), dir), framework.ErrTooLarge)
		if framework.Retryable(err) || errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("%v: a read has no effect", err)
		}
		wantErr(t, "another read", <-others, nil)
		if retries > 0 {
			t.Errorf("%d retries", retries)
		}
		synctest.Wait()
		seen.await(t, connecting, connected)
	})
}

// Where the directory can't be listed, the session's own ephemeral znodes can.
func TestAProtectedCreateInAnOversizedDirectory(t *testing.T) {
	t.Run("finds its znode", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			dir, _ := oversized(t, srv)
			c := small(t, srv)
			lost := srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
			var st framework.Stat
			path := must.Get(c.Create(t.Context(), dir+"/a-", nil, framework.Ephemeral(), framework.Sequential(), framework.Protected(), framework.StatTo(&st)))(t)
			await(t, lost.Hit(), "the reply that is lost")
			if st.EphemeralOwner != c.Session().ID {
				t.Errorf("%s is of session %#x", path, st.EphemeralOwner)
			}
			if own, err := c.Ephemerals(t.Context(), dir); err != nil || len(own) != 1 || own[0] != path {
				t.Errorf("ephemerals %v, %v, want %s alone", own, err, path)
			}
		})
	})
	t.Run("deletes an orphan", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			dir, node := oversized(t, srv)
			var seen trail
			c := small(t, srv, framework.WithStateListener(seen.add))
			if _, ok, err := c.Exists(t.Context(), node); err != nil || !ok { // so that it knows of no later one
				t.Fatal(ok, err)
			}
			srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.HoldReply})
			ctx := within(t, 100*time.Millisecond)
			_, err := c.Create(ctx, dir+"/a-", nil, framework.Ephemeral(), framework.Protected())
			wantErr(t, "Create", err, framework.ErrUnknownOutcome, context.DeadlineExceeded)
			srv.Cut()
			c.Discard(node) // another deletion
			<-time.After(10 * time.Second)
			if own, err := c.Ephemerals(t.Context(), dir); err != nil || len(own) > 0 || c.PendingDeletes() > 0 {
				t.Errorf("ephemerals %v, %v; %d deletions pending", own, err, c.PendingDeletes())
			}
			wantExists(t, c, node, false)
			seen.await(t, connecting, connected, suspended, connected)
		})
	})
}

// A server that is slow, and replies in order, keeps its connection.
func TestAServerThatRepliesLateKeepsItsConnection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithRetry(retry.Never()))
		timeout := c.Session().Timeout
		for range 10 {
			srv.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.DelayReply, Delay: timeout / 2})
			must.Get2(c.Get(t.Context(), "/"))(t)
		}
	})
}

// WhenOver's function may close the client, wherever the deletion ends.
func TestWhenOverMayCloseTheClient(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, srv *zkserver.Server, c *framework.Client, over func(bool)){
		"Delete": func(t *testing.T, _ *zkserver.Server, c *framework.Client, over func(bool)) {
			must.OK(t, c.Delete(t.Context(), "/node", framework.WhenOver(over)))
		},
		"Discard": func(_ *testing.T, _ *zkserver.Server, c *framework.Client, over func(bool)) {
			c.Discard("/node", framework.WhenOver(over))
		},
		"Discard that Close ends": func(_ *testing.T, srv *zkserver.Server, c *framework.Client, over func(bool)) {
			srv.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldRequest})
			c.Discard("/node", framework.WhenOver(over))
			synctest.Wait()
			_ = c.Close() // reports that the deletion is not done
		},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := virtual(t, srv)
			mustCreate(t, c, "/node", "")
			closed := make(chan error, 1)
			end(t, srv, c, func(bool) { closed <- c.Close() })
			select {
			case <-closed:
			case <-time.After(time.Minute):
				t.Fatal(fmt.Errorf("WhenOver's function is blocked in Close"))
			}
		})
	}
}
