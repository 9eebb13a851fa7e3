package cache_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/cachebounds"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestBounds_of_data keeps the data that one of the functions asks for, even after a change.
func TestBounds_of_data(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c := s.Client(t)
		s.create(t, c, "/a/keep", "kept by its name")
		s.create(t, c, "/a/short", "12")
		s.create(t, c, "/a/long", strings.Repeat("x", 100))
		made := s.ready(t, s.Client(t), s.path, bound(cachebounds.Bounds{
			ByPath: func(path string) bool { return strings.HasSuffix(path, "/keep") },
			ByStat: func(_ string, stat framework.Stat) bool { return stat.DataLength == 2 },
		}))
		s.want(t, made, map[string]string{"": "", "/a": "", "/a/keep": "kept by its name", "/a/short": "12", "/a/long": ""})
		if n, err := made.Get(s.path + "/a/long"); err != nil || n.Stat.DataLength != 100 {
			t.Errorf("the znode without data: %+v", n)
		}
		s.set(t, c, "/a/long", "34")
		s.set(t, c, "/a/short", strings.Repeat("y", 100))
		s.set(t, c, "/a/keep", "again")
		s.create(t, c, "/a/long/below", "5678")
		s.want(t, made, map[string]string{
			"": "", "/a": "", "/a/keep": "again", "/a/short": "", "/a/long": "34", "/a/long/below": "",
		})
	})
}

// TestBounds_of_data_with_a_function_that_panics is one that does not ask for the data.
func TestBounds_of_data_with_a_function_that_panics(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		s.create(t, s.Client(t), "/a", "1")
		made := s.ready(t, s.Client(t), s.path, bound(cachebounds.Bounds{
			ByPath: func(path string) bool { panic("on purpose") },
			ByStat: func(path string, _ framework.Stat) bool {
				if path != s.path {
					panic("on purpose")
				}
				return true
			},
		}))
		s.want(t, made, map[string]string{"": "", "/a": ""})
	})
}

// TestBounds_of_znodes leaves out what exceeds the limit, and has it when there is room.
func TestBounds_of_znodes(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		route, c := s.Route(t), s.Client(t)
		for i := range 5 {
			s.create(t, c, fmt.Sprintf("/%d", i), "")
		}
		made := s.ready(t, route.Client(t), s.path, bound(cachebounds.Bounds{Znodes: 4}))
		s.wantBounded(t, made, 4, 2, 0)
		s.create(t, c, "/5", "")
		s.wantBounded(t, made, 4, 3, 0)
		route.Cut()
		s.wantBounded(t, made, 4, 3, 0)
		for i := range 6 {
			if i%2 == 0 {
				s.delete(t, c, fmt.Sprintf("/%d", i))
			}
		}
		s.wantBounded(t, made, 4, 0, 0)
		route.Cut()
		s.wantBounded(t, made, 4, 0, 0)
	})
}

// TestBounds_of_the_rate fills a cache at the rate.
func TestBounds_of_the_rate(t *testing.T) {
	eachVirtually(t, func(t *testing.T, s *scene, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		for i := range 300 {
			s.create(t, c, fmt.Sprintf("/%d", i), "")
		}
		began := time.Now()
		s.ready(t, c, s.path, bound(cachebounds.Bounds{Rate: 100}))
		if took := time.Since(began); took < 2500*time.Millisecond || took > 4*time.Second {
			t.Errorf("300 znodes took %v at 100 a second", took)
		}
	})
}

// The fill of a cache asks a server for little at once. A real server with the heap that ZooKeeper's scripts give
// it ends by an OutOfMemoryError if it has to keep the replies for 250 MB.
func TestAFillOfLargeZnodesKeepsARealServerAlive(t *testing.T) {
	srv := zktest.Run(t, zktest.WithJVMFlags("-Xmx1000m", "-XX:+ExitOnOutOfMemoryError"))
	writer := must.Get(framework.NewClient(srv.Addr(), framework.WithSessionTimeout(30*time.Second)))(t)
	defer writer.Close()
	const znodes = 250
	data := make([]byte, 1000*1000)
	must.Get(writer.Create(t.Context(), "/c", nil))(t)
	for i := range znodes {
		must.Get(writer.Create(t.Context(), fmt.Sprintf("/c/%d", i), data))(t)
	}
	reader := must.Get(framework.NewClient(srv.Addr(), framework.WithSessionTimeout(30*time.Second)))(t)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	made := must.Get(cache.New(reader, "/c"))(t)
	defer made.Close()
	if err := made.Ready(ctx); err != nil || made.Snapshot().Len() != znodes+1 {
		t.Errorf("%d znodes of %d: %v", made.Snapshot().Len(), znodes+1, err)
	}
}

// What may be read at last, and has no room, is left out, and no longer unread.
func TestBounds_of_znodes_that_could_not_be_read(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		owner := s.Client(t, framework.WithAuth("digest", []byte("cache:secret")))
		s.create(t, owner, "", "")
		s.create(t, owner, "/b", "", framework.WithACL(acl.Entry{Perms: acl.All, Scheme: "auth"}))
		made := s.ready(t, s.Client(t), s.path, bound(cachebounds.Bounds{Znodes: 2}))
		s.create(t, owner, "/a", "")
		s.wantBounded(t, made, 2, 0, 1)
		allow(t, owner, s.path+"/b")
		s.wantBounded(t, made, 2, 1, 0)
		s.delete(t, owner, "/a")
		s.wantBounded(t, made, 2, 0, 0)
	})
}

// wantBounded waits until the cache has, leaves out and can't read these numbers of znodes.
func (s *scene) wantBounded(t *testing.T, c *cache.Cache, has, leftOut, unread int) {
	t.Helper()
	zktest.Eventually(t, recipetest.Generous, fmt.Sprintf("%d znodes, %d left out, %d unread", has, leftOut, unread), func() bool {
		mustSync(t, c)
		now := c.Snapshot()
		return now.Len() == has && cache.LeftOut(now) == leftOut && len(maps.Collect(now.Unread())) == unread
	})
}

// bound returns the option that the command's live view makes of bounds.
func bound(b cachebounds.Bounds) cache.Option {
	return struct {
		cache.Option
		cachebounds.Bounds
	}{cache.WithFilter(func(string) bool { return true }), b}
}
