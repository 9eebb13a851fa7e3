package framework_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
)

// A malformedReply is what a server answers to the first request of an opcode.
type malformedReply struct {
	name   string
	opcode int32
	frame  func(xid int32) []byte // with its length
}

func malformedReplies() []malformedReply {
	short := func(n int) func(int32) []byte { return func(int32) []byte { return frameOf(make([]byte, n)) } }
	body := func(values ...any) func(int32) []byte {
		return func(xid int32) []byte { return frameOf(replyBody(xid, values...)) }
	}
	event := func(values ...any) func(int32) []byte {
		return func(int32) []byte { return frameOf(append(be(-1, int64(1), 0), be(values...)...)) }
	}
	stat := statBytes()
	const exists, get, getACL, set, children, multi, create2 = 3, 4, 6, 5, 12, 14, 15
	return []malformedReply{
		{"no byte", exists, short(0)},
		{"a frame below a head", exists, short(15)},
		{"a negative length", exists, func(int32) []byte { return be(-1) }},
		{"the longest length", exists, func(int32) []byte { return be(int32(1<<31 - 1)) }},
		{"a request that was never sent", exists, func(xid int32) []byte { return frameOf(replyBody(xid+1000, stat)) }},
		{"a negative request", exists, func(int32) []byte { return frameOf(replyBody(-77, stat)) }},
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
		{"a transaction's result of no kind", multi, body(99, byte(0), 0, -1, byte(1), -1)},
		{"a transaction that ends in a head", multi, body(2, byte(0), 0, -1)},
		{"an event that is cut short", exists, event(1, 3)},
		{"an event's path beyond the frame", exists, event(1, 3, 1<<30, "/a")},
		{"an event without a path", exists, event(1, 3, 0)},
		{"an event of a path that begins without a slash", exists, event(2, 3, 1, "a")},
		{"an event of a path that ends in a slash", exists, event(3, 3, 3, "/a/")},
		{"an event of a path with an empty element", exists, event(3, 3, 5, "/a//b")},
		{"a child without a name", children, body(1, 0, stat)},
		{"a child's name with a slash", children, body(1, 3, "a/b", stat)},
	}
}

// ask makes the request of the opcode.
func ask(ctx context.Context, c *framework.Client, opcode int32) error {
	var err error
	switch opcode {
	case 3:
		_, _, err = c.Exists(ctx, "/a")
	case 4:
		_, _, err = c.Get(ctx, "/a")
	case 5:
		_, err = c.Set(ctx, "/a", nil, 0)
	case 6:
		_, _, err = c.ACL(ctx, "/a")
	case 12:
		_, _, err = c.Children(ctx, "/a")
	case 14:
		_, err = c.Txn(ctx, framework.OpSet("/a", nil, 0))
	case 15:
		_, err = c.Create(ctx, "/a", nil)
	}
	return err
}

// Each of these once ended the process, or was taken for a request that had not been sent.
func TestAMalformedReply(t *testing.T) {
	for _, tc := range malformedReplies() {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen trail
				answered := false
				srv := &rawServer{frames: func(xid, opcode int32) []byte {
					if opcode != tc.opcode || answered {
						return nil
					}
					answered = true
					return tc.frame(xid)
				}}
				c := raw(t, srv, framework.WithRetry(retry.Never()), framework.WithStateListener(seen.add))
				must.OK(t, c.AwaitConnected(t.Context()))
				err := ask(t.Context(), c, tc.opcode)
				wantErr(t, "the request", err, framework.ErrUnknownOutcome)
				if errors.Is(err, framework.ErrTooLarge) {
					t.Errorf("%v: it was sent", err)
				}
				seen.await(t, connecting, connected, suspended, connected)
				if err := ask(t.Context(), c, 3); err != nil {
					t.Errorf("on the next connection: %v", err)
				}
			})
		})
	}
}

func TestAMalformedHandshake(t *testing.T) {
	granting := func(timeout time.Duration) []byte { return frameOf(goodGreeting(timeout)) }
	for name, greeting := range map[string][]byte{
		"grants no timeout":           granting(0),
		"grants a negative timeout":   granting(-time.Second),
		"grants a timeout of 1 ms":    granting(time.Millisecond),
		"has a negative length":       be(-1),
		"has no password":             frameOf(be(0, 4000, int64(7), 0)),
		"has a null password":         frameOf(be(0, 4000, int64(7), -1)),
		"has a password of 900 bytes": frameOf(be(0, 4000, int64(7), 900, make([]byte, 901))),
		"is a reply":                  frameOf(be(0, int64(0), -119)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				srv := &rawServer{greet: func() []byte {
					if asked++; asked == 1 {
						return greeting
					}
					return frameOf(goodGreeting(4 * time.Second))
				}}
				c := raw(t, srv)
				must.OK(t, c.AwaitConnected(t.Context()))
				if err := ask(t.Context(), c, 3); err != nil || srv.connections() != 2 {
					t.Errorf("%v, after %d connections, want the second to serve", err, srv.connections())
				}
			})
		})
	}
}

// Events of a session are the wire client's own: a server that sends one can't make the
// client believe that its session has expired.
func TestAServersEventOfNoZnodeIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen trail
		srv := &rawServer{answer: func(xid, opcode int32) [][]byte {
			if opcode != 3 {
				return nil
			}
			var replies [][]byte
			for _, kind := range []int{-1, -2, 0, 5, 1 << 30} {
				for _, state := range []int{-112, 0, 101} {
					replies = append(replies, append(be(-1, int64(1), 0), be(kind, state, 2, "/a")...))
				}
			}
			return append(replies, goodReply(xid, opcode))
		}}
		c := raw(t, srv, framework.WithStateListener(seen.add))
		must.OK(t, c.AwaitConnected(t.Context()))
		if err := ask(t.Context(), c, 3); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		seen.await(t, connecting, connected)
	})
}
