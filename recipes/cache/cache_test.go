package cache_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/cachetest"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestReadyHasWhatWasThere(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c := s.Client(t)
		s.create(t, c, "", "root")
		s.create(t, c, "/a", "1")
		s.create(t, c, "/a/x", "2")
		s.create(t, c, "/a-b", "3")
		s.create(t, c, "/b/y/z", "4", framework.Ephemeral())
		made := s.ready(t, s.Client(t), s.path)
		view := made.Snapshot()
		want := map[string]string{"": "root", "/a": "1", "/a/x": "2", "/a-b": "3", "/b": "", "/b/y": "", "/b/y/z": "4"}
		for path, data := range want {
			n, err := made.Get(s.path + path)
			if err != nil || string(n.Data) != data || n.Path != s.path+path || n.Stat.Czxid == 0 {
				t.Errorf("%s: %+v, %v; want data %q", path, n, err, data)
			}
		}
		if !view.Settled() || view.Len() != len(want) {
			t.Errorf("settled %v with %d znodes, want %d", view.Settled(), view.Len(), len(want))
		}
		if _, stale := made.Stale(); stale {
			t.Error("it is stale")
		}
		var names, all []string
		for name, n := range view.Children(s.path) {
			names = append(names, name+" "+n.Path[len(s.path):])
		}
		for path := range view.All() {
			all = append(all, path[len(s.path):])
		}
		if want := []string{"a /a", "a-b /a-b", "b /b"}; !slices.Equal(names, want) {
			t.Errorf("children %q, want %q", names, want)
		}
		if want := slices.Sorted(maps.Keys(want)); !slices.Equal(all, want) {
			t.Errorf("paths %q, want %q", all, want)
		}
	})
}

// A listener that comes late begins with all that there is.
func TestALateListenerIsToldEverything(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c := s.Client(t)
		s.create(t, c, "/a/b", "1")
		made := s.ready(t, c, s.path)
		late := cachetest.Record(made)
		s.set(t, c, "/a/b", "2")
		mustSync(t, made)
		late.Check(t, made.Snapshot())
		if lines := late.Lines(); !slices.Equal(lines[:4], []string{"added =", "added /a=", "added /a/b=1", "ready"}) {
			t.Errorf("a listener that comes late begins with %q", lines[:4])
		}
	})
}

// No transaction created the root: its Czxid is 0. A cache of it has what was there nevertheless.
func TestCacheOfTheRoot(t *testing.T) {
	eachVirtually(t, func(t *testing.T, s *scene, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		s.create(t, c, "/a", "data")
		made := s.ready(t, c, "/", cache.WithFilter(func(path string) bool { return path != "/zookeeper" }))
		if got, want := contents(made.Snapshot()), map[string]string{"/": "", s.path: "", s.path + "/a": "data"}; !maps.Equal(got, want) {
			t.Errorf("the cache has %v, want %v", got, want)
		}
	})
}

func TestAnAbsentPathStaysAbsent(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c := s.Client(t)
		made := s.ready(t, c, s.path+"/none/below")
		if made.Snapshot().Len() != 0 {
			t.Errorf("the cache has %v", contents(made.Snapshot()))
		}
		must.OK(t, made.Close())
		if _, ok, err := c.Exists(t.Context(), s.path); err != nil || ok {
			t.Errorf("the cache made its path: %v, %v", ok, err)
		}
	})
}

func TestAZnodeMadeAgainDuringAnOutageIsReported(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		other, route := s.Client(t), s.Route(t)
		s.create(t, other, "/a/b", "old")
		s.create(t, other, "/gone", "")
		s.create(t, other, "/same/x", "")
		made := s.ready(t, route.Client(t), s.path)
		j := cachetest.Record(made)
		j.Await(t, "ready")
		route.Refuse()
		route.Cut()
		j.Await(t, "stale")
		s.delete(t, other, "/a/b")
		s.delete(t, other, "/a")
		s.delete(t, other, "/gone")
		s.create(t, other, "/a", "")
		s.create(t, other, "/a/b", "new")
		before := len(j.Lines())
		route.Heal()
		j.Await(t, "ready")
		mustSync(t, made)
		j.Check(t, made.Snapshot())
		got := j.Lines()[before:]
		slices.Sort(got)
		want := []string{"added /a/b=new", "added /a=", "ready", "removed /a/b=old", "removed /a=", "removed /gone="}
		if !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestStaleIsReportedAtSuspendedAndReadyAfterTheResync(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		other, route := s.Client(t), s.Route(t)
		s.create(t, other, "/a", "1")
		start := time.Now()
		made := s.open(t, route.Client(t), s.path)
		if since, stale := made.Stale(); stale && since.Before(start) {
			t.Errorf("stale since %v, before it was made at %v", since, start)
		}
		j := cachetest.Record(made)
		mustReady(t, made)
		for _, away := range []func(){func() { route.Cut() }, func() { route.Expire(t) }} {
			route.Refuse()
			broken := time.Now()
			route.Cut()
			j.Await(t, "stale")
			if since, stale := made.Stale(); !stale || since.Before(broken) || since.After(time.Now()) {
				t.Errorf("stale %v since %v, want since %v", stale, since, broken)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			recipetest.Fails(t, "Ready of a cache that is stale", made.Ready(ctx), context.DeadlineExceeded)
			recipetest.Fails(t, "Sync of a cache that is stale", made.Sync(ctx), context.DeadlineExceeded)
			cancel()
			if _, err := made.Get(s.path + "/a"); err != nil {
				t.Error("an outage empties the cache")
			}
			route.Heal()
			mustReady(t, made)
			j.Await(t, "ready")
			if _, stale := made.Stale(); stale {
				t.Error("it is ready and stale")
			}
			before := j.Count("stale")
			away()
			zktest.Eventually(t, recipetest.Generous, "the cache is stale", func() bool { return j.Count("stale") > before })
			j.Await(t, "ready")
		}
		s.set(t, other, "/a", "2")
		s.want(t, made, map[string]string{"": "", "/a": "2"})
		j.Check(t, made.Snapshot())
	})
}

func TestAWatchOnTheCachesPathDoesNotDeafenIt(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c := s.Client(t)
		s.create(t, c, "/a", "1")
		watch := func() {
			for _, kind := range []framework.WatchKind{framework.WatchData, framework.WatchExists, framework.WatchChildren} {
				w := must.Get(c.Watch(t.Context(), s.path, kind))(t)
				t.Cleanup(w.Close)
			}
		}
		watch()
		made := s.ready(t, c, s.path)
		watch()
		s.set(t, c, "/a", "2")
		s.set(t, c, "", "3")
		watch()
		s.set(t, c, "/a", "4")
		s.want(t, made, map[string]string{"": "3", "/a": "4"})
	})
}

func TestDepthAndFilter(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c, other := s.Client(t), s.Client(t)
		write := func(data string) {
			for _, path := range []string{"/a", "/a/b", "/a/b/c", "/no", "/no/d"} {
				s.create(t, other, path, data)
			}
		}
		s.create(t, other, "", "")
		write("1")
		alone := s.ready(t, c, s.path, cache.WithDepth(0))
		flat := s.ready(t, c, s.path, cache.WithDepth(1))
		some := s.ready(t, c, s.path, cache.WithFilter(func(path string) bool {
			if strings.HasSuffix(path, "/c") {
				panic("refused")
			}
			return !strings.HasSuffix(path, "/no")
		}))
		check := func() {
			s.want(t, alone, map[string]string{"": ""})
			s.want(t, flat, map[string]string{"": "", "/a": "1", "/no": "1"})
			s.want(t, some, map[string]string{"": "", "/a": "1", "/a/b": "1"})
		}
		check()
		for _, path := range []string{"/no/d", "/no", "/a/b/c", "/a/b", "/a"} {
			s.delete(t, other, path)
		}
		write("1")
		check()
	})
}
