package wire_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

// TestWhatAnAnswerProves answers one request, behind a ping that lies a margin before it.
func TestWhatAnAnswerProves(t *testing.T) {
	const proof, nothing = true, false
	for _, tc := range []struct {
		name   string
		opcode proto.Opcode
		code   proto.Code
		zxid   int64
		want   bool
	}{
		{"setData", proto.OpSetData, 0, 7, proof},
		{"create", proto.OpCreate, 0, 7, proof},
		{"createTTL", proto.OpCreateTTL, 0, 7, proof},
		{"reconfig", proto.OpReconfig, 0, 7, proof},
		{"no znode", proto.OpSetData, -101, 7, proof},
		{"no permission", proto.OpSetData, -102, 7, proof},
		{"bad version", proto.OpSetData, -103, 7, proof},
		{"no children of ephemerals", proto.OpCreate, -108, 7, proof},
		{"znode exists", proto.OpCreate, -110, 7, proof},
		{"not empty", 2, -111, 7, proof},
		{"invalid ACL", proto.OpCreate, -114, 7, proof},
		{"bad arguments", proto.OpSetData, -8, 7, proof},
		{"quota exceeded", proto.OpSetData, -125, 7, proof},

		{"sync", proto.OpSync, 0, 7, nothing},
		{"read", proto.OpGetData, 0, 7, nothing},
		{"check outside a transaction", 13, 0, 7, nothing},
		{"addWatch", 106, 0, 7, nothing},
		{"no permission, from the server alone", proto.OpSetData, -102, 0, nothing},
		{"invalid ACL, from the server alone", proto.OpCreate, -114, 0, nothing},
		{"unknown request", proto.OpSetData, -6, 7, nothing},
		{"session expired", proto.OpSetData, -112, 7, nothing},
		{"authentication failed", proto.OpSetData, -115, 7, nothing},
		{"session moved", proto.OpSetData, -118, 7, nothing},
		{"read-only server", proto.OpSetData, -119, 7, nothing},
		{"authentication required", proto.OpSetData, -124, 7, nothing},
		{"throttled", proto.OpSetData, -127, 7, nothing},
		{"a code of a later server", proto.OpSetData, -130, 7, nothing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checkProof(t, tc.opcode, tc.zxid, tc.code, make([]byte, 100), tc.want)
		})
	}
}

// TestWhatATransactionsResultsProve has a leader that commits the failure of a session
// that it doesn't know.
func TestWhatATransactionsResultsProve(t *testing.T) {
	failed := func(codes ...int32) (body []byte) {
		for _, code := range codes {
			body = binary.BigEndian.AppendUint32(append(body, 0xff, 0xff, 0xff, 0xff, 0), uint32(code))
			body = binary.BigEndian.AppendUint32(body, uint32(code))
		}
		return append(body, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)
	}
	checked := append([]byte{0, 0, 0, 13, 0, 0, 0, 0, 0}, failed()...)
	for name, tc := range map[string]struct {
		results []byte
		want    bool
	}{
		"no operation":           {failed(), true},
		"a check that succeeded": {checked, true},
		"a check of no znode":    {failed(-101), true},
		"the second failed":      {failed(0, -103, -2), true},
		"throttled":              {failed(-127), false},
		"session expired":        {failed(-112), false},
		"session moved":          {failed(0, -118, -2), false},
		"many operations":        {failed(make([]int32, 8000)...), true},
	} {
		t.Run(name, func(t *testing.T) {
			checkProof(t, proto.OpMulti, 7, 0, tc.results, tc.want)
		})
	}
}

func checkProof(t *testing.T, opcode proto.Opcode, zxid int64, code proto.Code, body []byte, want bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		<-time.After(time.Second)
		p.ping()
		<-time.After(margin)
		before := p.wire.Status().Deadline
		p.reply(replyOf(p.request(opcode), zxid, code, body))
		if moved := p.wire.Status().Deadline.After(before); moved != want {
			t.Errorf("the deadline moved: %v, want %v", moved, want)
		}
		if p.wire.Status().Proven.Equal(time.Now()) != want {
			t.Error("what Proven returns does not agree: " + fmt.Sprint(p.wire.Status().Proven))
		}
		wantAllAnswered(t, p.wire)
	})
}

// TestTheLeastTimeoutOfASessionCounts has a second server that grants more: a new leader uses the
// timeout that the session began with.
func TestTheLeastTimeoutOfASessionCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		more := greeting(7)
		binary.BigEndian.PutUint32(more[4:], uint32(3*timeout/time.Millisecond))
		must.OK(t, p.connect(framed(more)))
		p.write()
		if left := time.Until(p.wire.Status().Deadline); left > timeout {
			t.Errorf("the deadline is %v away, want no more than %v", left, timeout)
		}
		if got := p.wire.Status().Timeout; got != timeout {
			t.Errorf("session timeout %v, want %v", got, timeout)
		}
	})
}
