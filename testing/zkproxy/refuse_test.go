package zkproxy_test

import (
	"bytes"
	"testing"

	"github.com/docent-go/docent/testing/fault"
)

// A refused request does not reach the server. Its refusal comes in its place among the replies,
// as a server's own does, even when the request is longer than a piece.
func TestRefuseRequest(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	for _, tt := range []struct {
		code   fault.Code
		number int32
	}{{fault.Throttled, -127}, {fault.NotReadOnly, -119}, {fault.NoAuth, -102}, {fault.AuthRequired, -124}, {fault.Unimplemented, -6}} {
		t.Run(tt.code.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			refused := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: s.node, Action: fault.Refuse, Code: tt.code})
			before := s.client.send(opCreate, s.create(s.node+"-before"))
			xid := s.client.send(opCreate, packet{}.create(opCreate, s.node, large))
			after := s.client.send(opExists, packet{}.string("/").bool(false))
			s.client.wantReplies(before)
			got := s.client.receive()
			if got.xid != xid || got.code != tt.number || len(got.body) != 0 {
				t.Errorf("xid %d, code %d, body %x; want xid %d, code %d and no body", got.xid, got.code, got.body, xid, tt.number)
			}
			if last := got.zxid; got.zxid != tt.code.Zxid(last) {
				t.Errorf("zxid %d; want %d", got.zxid, tt.code.Zxid(last))
			} else if (tt.code == fault.Throttled || tt.code == fault.NotReadOnly) && last <= 0 {
				t.Errorf("zxid %d; want the server's", last)
			}
			wantHit(t, refused.Hit())
			if s.direct.exists(s.node) {
				t.Error("the create has been applied")
			}
			if tt.code.Closes() {
				s.client.wantEnd()
				return
			}
			s.client.wantReplies(after)
			s.client.must(opCreate, s.create(s.node))
		})
	}
}
