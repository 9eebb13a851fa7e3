package zkproxy_test

import (
	"bytes"
	"testing"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
)

// A refused request does not reach the server. Its refusal comes in its place among the replies,
// as a server's own does, even when the request is longer than a piece.
func TestRefuseRequest(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	for _, code := range []fault.Code{fault.Throttled, fault.NotReadOnly, fault.NoAuth, fault.AuthRequired, fault.Unimplemented} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			refused := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: s.node, Action: fault.Refuse, Code: code})
			before := s.client.send(proto.OpCreate, s.create(s.node+"-before"))
			xid := s.client.send(proto.OpCreate, packet{}.create(proto.OpCreate, s.node, large))
			after := s.client.ask("/")
			s.client.wantReplies(before)
			got := s.client.receive()
			if got.Xid != xid || fault.Code(got.Code) != code || len(got.body) != 0 {
				t.Errorf("xid %d, code %d, body %x; want xid %d, code %d and no body", got.Xid, got.Code, got.body, xid, code)
			}
			if last := got.Zxid; got.Zxid != code.Zxid(last) {
				t.Errorf("zxid %d; want %d", got.Zxid, code.Zxid(last))
			} else if (code == fault.Throttled || code == fault.NotReadOnly) && last <= 0 {
				t.Errorf("zxid %d; want the server's", last)
			}
			wantHit(t, refused.Hit())
			if s.direct.exists(s.node) {
				t.Error("the create has been applied")
			}
			if code.Closes() {
				s.client.wantEnd()
				return
			}
			s.client.wantReplies(after)
			s.client.must(proto.OpCreate, s.create(s.node))
		})
	}
}
