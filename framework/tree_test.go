package framework_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestGetTree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		writer := virtual(t, srv)
		c := must.Get(virtual(t, srv, framework.WithMaxPacket(1<<20, 8<<10)).Namespace("app"))(t)
		if tree, err := c.GetTree(t.Context(), "/none"); !errors.Is(err, framework.ErrNoNode) || len(tree) > 0 {
			t.Errorf("of nothing: %v, %v", tree, err)
		}
		want := map[string]string{"/t": "", "/t/large": "named", "/t/private": "named"}
		create := func(path, data string, opts ...framework.CreateOption) {
			must.Get(writer.Create(t.Context(), "/app"+path, []byte(data), append(opts, framework.WithParents())...))(t)
			want[path] = data
		}
		for i := range 300 {
			create(fmt.Sprintf("/t/wide/%d", i), fmt.Sprint(i))
		}
		create("/t/deep/er/leaf", "leaf", framework.Ephemeral())
		create("/t/large/below", "below")
		create("/t/private/hidden", "hidden")
		for _, dir := range []string{"/t/wide", "/t/deep", "/t/deep/er"} {
			want[dir] = ""
		}
		delete(want, "/t/private/hidden")
		must.Get(writer.Set(t.Context(), "/app/t/large", []byte(strings.Repeat("x", 20<<10)), framework.AnyVersion))(t)
		must.Get(writer.SetACL(t.Context(), "/app/t/private", []acl.Entry{{Perms: acl.All &^ acl.Read, Scheme: "world", ID: "anyone"}}, framework.AnyVersion))(t)
		tree, err := c.GetTree(t.Context(), "/t")
		if !errors.Is(err, framework.ErrTooLarge) || !errors.Is(err, framework.ErrNoAuth) ||
			strings.Count(err.Error(), "/app/t/large") != 1 || strings.Count(err.Error(), "/app/t/private") != 1 {
			t.Errorf("the error is %v", err)
		}
		got := map[string]string{"/t/large": "named", "/t/private": "named"}
		for path, read := range tree {
			got[path] = string(read.Data)
			if read.Stat.Czxid == 0 {
				t.Errorf("%s has no Stat", path)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d znodes: %q, want %d: %q", len(got), got, len(want), want)
		}
		srv.Refuse()
		srv.Cut()
		if tree, err := c.GetTree(t.Context(), "/t"); !errors.Is(err, framework.ErrNotConnected) {
			t.Errorf("in an outage: %d znodes, %v", len(tree), err)
		}
		srv.Accept()
	})
}

func TestPruneParents(t *testing.T) {
	t.Parallel()
	for path, tc := range map[string]struct{ znodes, left []string }{
		"/locks/a/b/c/lock-1":      {[]string{"/locks/a", "/locks/a/b", "/locks/a/b/c"}, nil},
		"/locks/a/gone/c/lock-1":   {[]string{"/locks/a"}, nil},
		"/locks/kept/held/lock-1":  {[]string{"/locks/kept", "/locks/kept/held", "/locks/kept/other"}, []string{"/locks/kept", "/locks/kept/other"}},
		"/locks/eph/lock-1":        {[]string{"/locks/eph"}, []string{"/locks/eph"}},
		"/locks/lock-1":            {nil, nil},
		"/elsewhere/never/made/up": {nil, nil},
	} {
		runVirtually(t, path, func(t *testing.T, srv *zkserver.Server) {
			c := virtual(t, srv)
			for _, znode := range append([]string{"/locks"}, tc.znodes...) {
				var opts []framework.CreateOption
				if znode == "/locks/eph" {
					opts = append(opts, framework.Ephemeral())
				}
				must.Get(c.Create(t.Context(), znode, nil, opts...))(t)
			}
			must.OK(t, c.PruneParents(t.Context(), path, "/"+strings.Split(path, "/")[1]))
			got := slices.DeleteFunc(srv.Paths(), func(p string) bool { return !strings.HasPrefix(p, "/locks/") })
			slices.Sort(got)
			wantList(t, "what remains", got, tc.left)
			wantExists(t, c, "/locks", true)
		})
	}
}
