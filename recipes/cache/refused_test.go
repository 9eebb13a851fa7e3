package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/cachetest"
	"github.com/docent-go/docent/testing/zkserver"
)

// forbid lets the owner alone read the znode, and allow lets every client.
func forbid(t testing.TB, owner *framework.Client, path string) {
	t.Helper()
	must.Get(owner.SetACL(t.Context(), path, []acl.Entry{{Perms: acl.All, Scheme: "auth"}}, framework.AnyVersion))(t)
}

func allow(t testing.TB, owner *framework.Client, path string) {
	t.Helper()
	must.Get(owner.SetACL(t.Context(), path, acl.Open(), framework.AnyVersion))(t)
}

// An ACL forbids to read the path for a while. Snapshots shows that as an error, keeps what the cache
// had, and goes on afterwards. No event removes a znode that exists.
func TestSnapshotsOutliveARefusal(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		owner := s.Client(t, framework.WithAuth("digest", []byte("cache:secret")))
		route := s.Route(t)
		s.create(t, owner, "/a", "1")
		made := s.ready(t, route.Client(t), s.path)
		j := cachetest.Record(made)
		type element struct {
			len int
			err error
		}
		elements := make(chan element)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			defer close(elements)
			for view, err := range made.Snapshots(ctx) {
				select {
				case elements <- element{view.Len(), err}:
				case <-ctx.Done():
				}
			}
		}()
		next := func(what string, is func(element) bool) {
			t.Helper()
			for {
				select {
				case e, open := <-elements:
					if !open {
						t.Fatalf("Snapshots ended before %s", what)
					}
					if is(e) {
						return
					}
				case <-time.After(recipetest.Generous):
					t.Fatalf("no element for %v: %s", recipetest.Generous, what)
				}
			}
		}
		next("the first snapshot", func(e element) bool { return e.err == nil && e.len == 2 })
		for range 2 {
			forbid(t, owner, s.path)
			route.Cut() // the cache reads everything again
			next("the refusal", func(e element) bool { return errors.Is(e.err, framework.ErrNoAuth) && e.len == 2 })
			recipetest.Fails(t, "Ready while the path may not be read", made.Ready(t.Context()), framework.ErrNoAuth)
			recipetest.Fails(t, "Sync while the path may not be read", made.Sync(t.Context()), framework.ErrNoAuth)
			if made.Snapshot().Settled() {
				t.Error("the snapshot is settled, although the path could not be read")
			}
			allow(t, owner, s.path)
			next("the snapshot after that", func(e element) bool { return e.err == nil && e.len == 2 })
			mustReady(t, made)
		}
		if slices.ContainsFunc(j.Lines(), func(line string) bool { return line == "removed /a=1" }) {
			t.Errorf("a znode that exists is reported as removed: %q", j.Lines())
		}
		s.set(t, owner, "/a", "2")
		s.want(t, made, map[string]string{"": "", "/a": "2"})
		j.Check(t, made.Snapshot())
	})
}

// What may not be read when the cache is made is read once an ACL allows it: by Sync at once, and
// otherwise by itself.
func TestWhatMayBeReadAtLastIsRead(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		owner := s.Client(t, framework.WithAuth("digest", []byte("cache:secret")))
		c := s.Client(t)
		private := framework.WithACL(acl.Entry{Perms: acl.All, Scheme: "auth"})
		s.create(t, owner, "", "")
		for _, path := range []string{"/root", "/root/a", "/below", "/below/b", "/below/c"} {
			s.create(t, owner, path, "1", private)
		}
		allow(t, owner, s.path+"/root/a")
		allow(t, owner, s.path+"/below")
		root := s.open(t, c, s.path+"/root")
		if err := root.Ready(t.Context()); !errors.Is(err, framework.ErrNoAuth) {
			t.Fatalf("Ready of a cache of what may not be read: %v", err)
		}
		below := s.ready(t, c, s.path+"/below")
		j := cachetest.Record(below)
		allow(t, owner, s.path+"/below/b")
		s.want(t, below, map[string]string{"/below": "1", "/below/b": "1"})
		allow(t, owner, s.path+"/below/c")
		allow(t, owner, s.path+"/root")
		for view, err := range root.Snapshots(t.Context()) {
			if err == nil && view.Len() == 2 {
				break
			}
		}
		j.Await(t, "added /c=1")
	})
}

// On ZooKeeper 3.9, exists needs permission to read too.
func TestARefusalOnNewServers(t *testing.T) {
	eachVirtually(t, func(t *testing.T, s *scene, srv *zkserver.Server) {
		owner := recipetest.ClientOf(t, srv)
		must.OK(t, owner.AddAuth(t.Context(), "digest", []byte("cache:secret")))
		s.create(t, owner, "/a", "1")
		forbid(t, owner, s.path)
		made := s.open(t, recipetest.ClientOf(t, srv), s.path)
		ctx := recipetest.Patient(t)
		recipetest.Fails(t, "Ready of a cache of what may not be read", made.Ready(ctx), framework.ErrNoAuth)
		recipetest.Fails(t, "Sync of a cache of what may not be read", made.Sync(ctx), framework.ErrNoAuth)
		srv.Cut() // nothing notifies of that
		s.set(t, owner, "/a", "2")
		allow(t, owner, s.path)
		for view, err := range made.Snapshots(ctx) {
			if err == nil && view.Len() == 2 {
				break
			}
		}
		s.want(t, made, map[string]string{"": "", "/a": "2"})
		s.set(t, owner, "", "3")
		s.want(t, made, map[string]string{"": "3", "/a": "2"})
	}, zkserver.WithVersion("3.9.6"))
}

// A directory whose listing was too large for the client is read once it has shrunk.
func TestADirectoryThatHasShrunkIsRead(t *testing.T) {
	for name, below := range map[string]string{"the cache's path": "", "below it": "/dir"} {
		t.Run(name, func(t *testing.T) {
			eachVirtually(t, func(t *testing.T, s *scene, srv *zkserver.Server) {
				writer := recipetest.ClientOf(t, srv)
				const most = 300
				for i := range most {
					s.create(t, writer, fmt.Sprintf("%s/%03d-%s", below, i, strings.Repeat("x", 60)), "")
				}
				small := recipetest.ClientOf(t, srv, framework.WithMaxPacket(1<<20, 8<<10))
				made := s.open(t, small, s.path)
				if err := made.Ready(recipetest.Patient(t)); (below == "") != errors.Is(err, framework.ErrTooLarge) {
					t.Errorf("Ready with a listing that is too large: %v", err)
				}
				for i := range most - 3 {
					s.delete(t, writer, fmt.Sprintf("%s/%03d-%s", below, i, strings.Repeat("x", 60)))
				}
				<-time.After(time.Minute)
				mustReady(t, made)
				n := 0
				for range made.Snapshot().Children(s.path + below) {
					n++
				}
				if n != 3 {
					t.Errorf("%d children, want 3", n)
				}
			})
		})
	}
}
