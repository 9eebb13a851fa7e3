package zkproxy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
)

func TestRequestLog(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.client.must(proto.OpCreate, s.create(s.node))
	s.client.exists(s.node)
	s.client.ping()
	s.client.wantReplies(proto.XidPing)

	want := []fault.Frame{
		{Op: fault.Connect},
		{Op: fault.Create, Session: s.client.id, Xid: 1, Path: s.node},
		{Op: fault.Exists, Session: s.client.id, Xid: 2, Path: s.node},
		{Op: fault.Ping, Session: s.client.id, Xid: proto.XidPing},
	}
	got := s.proxy.Requests()
	if len(got) != len(want) {
		t.Fatalf("requests %v; want %v", got, want)
	}
	var last time.Time
	for i, r := range got {
		w := want[i]
		if r.Op != w.Op || r.Session != w.Session || r.Xid != w.Xid || r.Path != w.Path || r.Parts != nil {
			t.Errorf("request %d is %+v; want %+v", i, r.Frame, w)
		}
		if r.At.Before(last) || time.Since(r.At) > time.Hour {
			t.Errorf("request %d came at %v, the one before at %v", i, r.At, last)
		}
		last = r.At
	}
	if got := s.proxy.Count(fault.Create, fault.Exists); got != 2 {
		t.Errorf("Count(Create, Exists) = %d; want 2", got)
	}
	if got := s.proxy.Count(); got != 0 {
		t.Errorf("Count() = %d; want 0", got)
	}

	s.proxy.ResetRequests()
	if got := s.proxy.Requests(); len(got) != 0 {
		t.Errorf("requests after the reset: %v", got)
	}
	s.client.exists("/")
	if got := s.proxy.Count(fault.Exists); got != 1 {
		t.Errorf("Count(Exists) = %d after the reset; want 1", got)
	}
}

func TestRequestLogOfAMulti(t *testing.T) {
	t.Parallel()
	// The server need not understand it.
	proxy := zkproxy.Run(t, silent(t))
	client := dial(t, proxy.Addr())
	client.sendHandshake()
	seen := proxy.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.Pass})

	multi := packet{}.part(proto.OpDelete).string("/delete").int32(-1)
	multi = multi.part(proto.OpCreate).create(proto.OpCreate, "/create", []byte("data"))
	multi = multi.part(proto.OpCreate2).create(proto.OpCreate2, "/create2", nil)
	multi = multi.part(proto.OpCreateContainer).create(proto.OpCreateContainer, "/container", nil)
	multi = multi.part(proto.OpCreateTTL).create(proto.OpCreateTTL, "/ttl", nil)
	multi = multi.part(proto.OpCheck).string("/check").int32(3)
	multi = multi.part(proto.OpSetData).string("/set").string("data").int32(-1)
	client.send(proto.OpMulti, multi.end())
	wantHit(t, seen.Hit())

	want := []fault.Part{
		{Op: fault.Delete, Path: "/delete"},
		{Op: fault.Create, Path: "/create"},
		{Op: fault.Create, Path: "/create2"},
		{Op: fault.Create, Path: "/container"},
		{Op: fault.Create, Path: "/ttl"},
		{Op: fault.Check, Path: "/check"},
		{Op: fault.SetData, Path: "/set"},
	}
	requests := proxy.Requests()
	if got := requests[len(requests)-1].Parts; !slices.Equal(got, want) {
		t.Errorf("parts %v; want %v", got, want)
	}
}
