package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/testing/zkserver"
)

// An event whose node the watcher may not read at that moment is lost, and the watch that it ends is gone:
// ZooKeeper since CVE-2024-23944.
func TestEventsThatMayNotBeReadAreLost(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		owner, watcher := connect(t, srv), connect(t, srv)
		owner.do(t, auth, 0, "digest", []byte("u1:p1"))
		closed := []entry{{31, "digest", "u1:" + digests["u1:p1"]}}
		setAll := func(acl []entry) {
			for _, path := range []string{"/p", "/p/changed", "/p/deleted"} {
				owner.do(t, setACL, path, acl, -1)
			}
		}
		for _, path := range []string{"/p", "/p/changed", "/p/deleted"} {
			owner.node(t, path, 0)
		}
		watcher.fails(t, errNoNode, exists, "/p/created", true)
		watcher.do(t, exists, "/p/changed", true)
		watcher.do(t, getData, "/p/deleted", true)
		watcher.do(t, getChildren, "/p", true)

		setAll(closed)
		owner.do(t, create, "/p/created", []byte(nil), closed, 0)
		owner.do(t, setData, "/p/changed", []byte("x"), -1)
		owner.do(t, del, "/p/deleted", -1)
		watcher.silent(t, time.Second)
		if n := srv.Watches(); n != 0 {
			t.Errorf("%d watches are left, want none", n)
		}
	})
}

// A watch on a tree covers all below, lasts, and says nothing of children beside. It goes with its connection.
func TestTreeIsWatched(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv)
		for _, root := range []string{"/", "/p"} {
			watcher := connect(t, srv)
			watcher.do(t, addWatch, root, 1)
			for _, path := range []string{"/p", "/p/a", "/p/a/b"} {
				c.node(t, path, 0)
				watcher.event(t, 1, path)
			}
			c.do(t, setData, "/p/a/b", []byte("new"), -1)
			watcher.event(t, 3, "/p/a/b")
			c.node(t, "/pa", 0)
			if root == "/" {
				watcher.event(t, 1, "/pa")
			}
			for _, path := range []string{"/pa", "/p/a/b", "/p/a", "/p"} {
				c.do(t, del, path, -1)
				if root == "/" || path != "/pa" {
					watcher.event(t, 2, path)
				}
			}
			watcher.silent(t, time.Second)
			watcher.nc.Close()
			synctest.Wait()
			if n := srv.Watches(); n != 0 {
				t.Errorf("%d watches are left, want none", n)
			}
		}
	})
}

// The end of a connection costs what its own watches do, however many others there are.
func TestEndOfAConnectionAmongManyWatches(t *testing.T) {
	t.Parallel()
	if set, ended := zkserver.WatchAndEnd(100_000, 200); ended > set {
		t.Errorf("100000 connections began to watch within %v, but 200 of them ended within %v", set, ended)
	}
}
