package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/testing/zkserver"
)

// An event whose node the watcher may not read at that moment is dropped, and the watch
// that it would have ended is gone: ZooKeeper since CVE-2024-23944.
func TestEventsThatMayNotBeReadAreLost(t *testing.T) {
	t.Parallel()
	closed := []entry{{31, "digest", "u1:" + digests["u1:p1"]}}
	tests := []struct {
		name  string
		watch func(c *client)
		event func(owner *client) // the owner may do everything
		again func(owner *client) // what the watch would tell of next
	}{
		{
			"creation with an ACL that lacks READ",
			func(c *client) { c.call(t, exists, "/p/a", true) },
			func(o *client) { o.do(t, create, "/p/a", []byte(nil), closed, 0) },
			func(o *client) { o.do(t, del, "/p/a", -1); o.do(t, create, "/p/a", []byte(nil), open(), 0) },
		},
		{
			"change of data",
			func(c *client) { c.do(t, exists, "/p/n", true) },
			func(o *client) { o.do(t, setACL, "/p/n", closed, -1); o.do(t, setData, "/p/n", []byte("x"), -1) },
			func(o *client) { o.do(t, setACL, "/p/n", open(), -1); o.do(t, setData, "/p/n", []byte("y"), -1) },
		},
		{
			"deletion",
			func(c *client) { c.do(t, getData, "/p/n", true) },
			func(o *client) { o.do(t, setACL, "/p/n", closed, -1); o.do(t, del, "/p/n", -1) },
			func(o *client) { o.do(t, create, "/p/n", []byte(nil), open(), 0); o.do(t, del, "/p/n", -1) },
		},
		{
			"change of the children of a closed directory",
			func(c *client) { c.do(t, getChildren, "/p", true) },
			func(o *client) { o.do(t, setACL, "/p", closed, -1); o.do(t, create, "/p/b", []byte(nil), open(), 0) },
			func(o *client) { o.do(t, setACL, "/p", open(), -1); o.do(t, del, "/p/b", -1) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				owner, watcher := connect(t, srv), connect(t, srv)
				owner.do(t, auth, 0, "digest", []byte("u1:p1"))
				owner.node(t, "/p", 0)
				owner.node(t, "/p/n", 0)
				tt.watch(watcher)
				tt.event(owner)
				watcher.silent(t, time.Second)
				tt.again(owner)
				watcher.silent(t, time.Second)
				if n := srv.Watches(); n != 0 {
					t.Errorf("%d watches are left, want none", n)
				}
			})
		})
	}
}
