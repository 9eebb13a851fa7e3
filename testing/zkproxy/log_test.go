package zkproxy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
)

func TestRequestLog(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		acl, id := zk.WorldACL(zk.PermAll), b.conn.SessionID()
		must.Get(b.conn.Create("/node", nil, 0, acl))(t)
		must.Get2(b.conn.Exists("/node"))(t)
		must.Get(b.conn.Multi(&zk.CheckVersionRequest{Path: "/node"}, &zk.CreateRequest{Path: "/other", Acl: acl},
			&zk.SetDataRequest{Path: "/node", Version: -1}, &zk.DeleteRequest{Path: "/other", Version: -1}))(t)
		want := []fault.Frame{
			{Op: fault.Connect},
			{Op: fault.Create, Session: id, Xid: 1, Path: "/node"},
			{Op: fault.Exists, Session: id, Xid: 2, Path: "/node"},
			{Op: fault.Multi, Session: id, Xid: 3, Parts: []fault.Part{
				{Op: fault.Check, Path: "/node"}, {Op: fault.Create, Path: "/other"},
				{Op: fault.SetData, Path: "/node"}, {Op: fault.Delete, Path: "/other"},
			}},
		}
		got := b.proxy.Requests()
		if len(got) != len(want) {
			t.Fatalf("requests %v; want %v", got, want)
		}
		for i, r := range got {
			w := want[i]
			if r.Op != w.Op || r.Session != w.Session || r.Xid != w.Xid || r.Path != w.Path || !slices.Equal(r.Parts, w.Parts) {
				t.Errorf("request %d is %+v; want %+v", i, r.Frame, w)
			}
			if !r.At.Equal(time.Now()) {
				t.Errorf("request %d came at %v; want %v", i, r.At, time.Now())
			}
		}
		if got := b.proxy.Count(fault.Create, fault.Exists); got != 2 || b.proxy.Count() != 0 {
			t.Errorf("Count(Create, Exists) = %d, Count() = %d; want 2 and 0", got, b.proxy.Count())
		}
		b.proxy.ResetRequests()
		must.Get2(b.conn.Exists("/"))(t)
		if got := b.proxy.Requests(); len(got) != 1 || got[0].Op != fault.Exists {
			t.Errorf("requests after the reset: %v; want one", got)
		}
		<-time.After(bubbleSession)
		if b.proxy.Count(fault.Ping) == 0 {
			t.Error("an idle client's pings are not among the requests")
		}
	})
}
