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
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := virtual(t, srv)
		for path, left := range map[string][]string{
			"/locks/a/b/c/lock-1":      {},
			"/locks/a/gone/c/lock-1":   {},
			"/locks/kept/held/lock-1":  {"/locks/kept", "/locks/kept/other"},
			"/locks/eph/lock-1":        {"/locks/eph"},
			"/locks/lock-1":            {},
			"/elsewhere/never/made/up": {},
		} {
			must.Get(c.Create(t.Context(), "/locks", nil, framework.Idempotent()))(t)
			switch {
			case strings.HasPrefix(path, "/locks/a"):
				must.Get(c.Create(t.Context(), "/locks/a", nil))(t)
				must.Get(c.Create(t.Context(), "/locks/a/b", nil))(t)
				if strings.Contains(path, "/b/") {
					must.Get(c.Create(t.Context(), "/locks/a/b/c", nil))(t)
				} else {
					must.OK(t, c.Delete(t.Context(), "/locks/a/b"))
				}
			case strings.HasPrefix(path, "/locks/kept"):
				must.Get(c.Create(t.Context(), "/locks/kept", nil))(t)
				must.Get(c.Create(t.Context(), "/locks/kept/held", nil))(t)
				must.Get(c.Create(t.Context(), "/locks/kept/other", nil))(t)
			case strings.HasPrefix(path, "/locks/eph"):
				must.Get(c.Create(t.Context(), "/locks/eph", nil, framework.Ephemeral()))(t)
			}
			root := "/" + strings.Split(path, "/")[1]
			must.OK(t, c.PruneParents(t.Context(), path, root))
			got := slices.DeleteFunc(srv.Paths(), func(p string) bool { return !strings.HasPrefix(p, "/locks/") })
			if slices.Sort(got); !slices.Equal(got, left) {
				t.Errorf("below %s remains %q, want %q", path, got, left)
			}
			if _, ok, err := c.Exists(t.Context(), "/locks"); err != nil || !ok {
				t.Errorf("the root is gone (%v)", err)
			}
			for _, p := range []string{"/locks/kept/other", "/locks/kept", "/locks/eph"} {
				_ = c.Delete(t.Context(), p) // of this case, if at all
			}
		}
	})
}
