package cache_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

type route struct {
	Host string `json:"host"`
}

// shown returns what values show, without the root of their paths.
func shown(root string, all []cache.Value[route]) string {
	var lines []string
	for _, v := range all {
		line := strings.TrimPrefix(v.Path, root) + "=" + v.Value.Host
		if v.Err != nil {
			line += "!" + zktel.ErrorType(v.Err)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, " ")
}

// TestAFaultyZnodeHidesNoOther: what is no JSON, what has an unknown version and what may not be read
// have errors of their own, and a znode without data is a directory.
func TestAFaultyZnodeHidesNoOther(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, s := env.Client(t), &scene{env, "/values"}
		s.create(t, c, "/a", `{"host":"h1","schema":1}`)
		s.create(t, c, "/b", `{"host":`)
		s.create(t, c, "/c", `{"hosts":["h1"],"schema":2}`)
		s.create(t, c, "/d/e", `{"host":"h2","schema":1}`)
		s.create(t, c, "/f", `{"host":"h3","schema":1}`, framework.WithACL(acl.Entry{Perms: acl.Write, Scheme: "world", ID: "anyone"}))
		s.create(t, c, "/g", "")
		tree := s.ready(t, c, s.path)
		values := cache.Of(tree, model.Versioned[route](1, nil))
		want := "/a=h1 /b=!_OTHER /c=!_OTHER /d/e=h2 /f=!no_auth /g=!_OTHER"
		if got := shown(s.path, values.All()); got != want {
			t.Errorf("values %s, want %s", got, want)
		}
		for path, want := range map[string]error{"/c": model.ErrSchema, "/f": framework.ErrNoAuth, "/none": framework.ErrNoNode} {
			if got, err := values.Get(s.path + path); !errors.Is(err, want) || got != (route{}) || !strings.Contains(err.Error(), path) {
				t.Errorf("Get %s: %v, %v; want %v", path, got, err, want)
			}
		}
		if got, err := values.Get(s.path + "/d/e"); err != nil || got.Host != "h2" {
			t.Errorf("Get: %v, %v", got, err)
		}
		s.set(t, c, "/b", `{"host":"h4","schema":1}`)
		s.delete(t, c, "/a")
		mustSync(t, tree)
		if got, want := shown(s.path, values.All()), "/b=h4 /c=!_OTHER /d/e=h2 /f=!no_auth /g=!_OTHER"; got != want {
			t.Errorf("values %s, want %s", got, want)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// TestChangesOfValues: each list is the latest one, with the errors of znodes in it, and no list comes
// twice.
func TestChangesOfValues(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, s := env.Client(t), &scene{env, "/changes"}
		s.create(t, c, "/a", `{"host":"h1"}`)
		tree := s.ready(t, c, s.path)
		steps := []func(){
			func() { s.set(t, c, "/a", "s3cret") },
			func() { s.create(t, c, "/b", `{"host":"h2"}`) },
			func() { s.set(t, c, "/a", `{"host":"h3"}`) },
			func() { s.delete(t, c, "/b") },
		}
		var got []string
		for all, err := range cache.Of(tree, model.JSON[route]()).Changes(t.Context()) {
			must.OK(t, err)
			got = append(got, shown(s.path, all))
			if len(steps) == 0 {
				break
			}
			steps[0]()
			steps = steps[1:]
		}
		want := "/a=h1 | /a=!_OTHER | /a=!_OTHER /b=h2 | /a=h3 /b=h2 | /a=h3"
		if got := strings.Join(got, " | "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// TestAStateIsDecodedOnce: even if many goroutines read it, and what is gone is forgotten.
func TestAStateIsDecodedOnce(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, s := env.Client(t), &scene{env, "/once"}
		s.create(t, c, "/a", "A")
		tree := s.ready(t, c, s.path)
		var decoded atomic.Int64
		codec := model.Bytes()
		decode := codec.Decode
		codec.Decode = func(data []byte) ([]byte, error) {
			decoded.Add(1)
			return decode(data)
		}
		values := cache.Of(tree, codec)
		if all := values.All(); len(all) != 2 || decoded.Load() != 2 { // the root has data, too: none
			t.Fatalf("%d values, %d decoded", len(all), decoded.Load())
		}
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for range 100 {
					if v, err := values.Get(s.path + "/a"); string(v) != "A" || err != nil || len(values.All()) != 2 {
						t.Errorf("%s, %v", v, err)
					}
				}
			})
		}
		readers.Wait()
		if n := decoded.Load(); n != 2 {
			t.Errorf("%d decoded, want 2", n)
		}
		s.delete(t, c, "/a")
		s.create(t, c, "/a", "A") // the same data, and another znode
		mustSync(t, tree)
		values.All()
		if n := decoded.Load(); n != 3 {
			t.Errorf("%d decoded after a creation, want 3", n)
		}
		for i := range 200 {
			path := fmt.Sprint("/passing-", i)
			s.create(t, c, path, "")
			mustSync(t, tree)
			values.All()
			s.delete(t, c, path)
		}
		mustSync(t, tree)
		if n := cache.Known(values); n > 100 {
			t.Errorf("%d values are kept of a cache with %d znodes", n, tree.Snapshot().Len())
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

// A setting that is not known yet, as in an outage at the start, is not one that was deleted; and neither is a
// path that is not the cache's.
func TestWhatIsNotKnownIsNotMissing(t *testing.T) {
	eachVirtually(t, func(t *testing.T, s *scene, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		s.create(t, c, "/a", `{"host":"h1"}`)
		srv.Refuse()
		srv.Cut()
		tree := s.open(t, c, s.path, cache.WithDepth(1))
		values := cache.Of(tree, model.JSON[route]())
		check := func(path string, want error) {
			t.Helper()
			_, err := tree.Get(path)
			_, ofValue := values.Get(path)
			for _, err := range []error{err, ofValue} {
				if !errors.Is(err, want) || want != nil && !errors.Is(want, framework.ErrNoNode) && errors.Is(err, framework.ErrNoNode) {
					t.Errorf("Get %s: %v, want %v", path, err, want)
				}
			}
			if tree.Filled() == errors.Is(want, cache.ErrNotRead) {
				t.Errorf("Filled: %v beside %v", tree.Filled(), want)
			}
		}
		check(s.path+"/a", cache.ErrNotRead)
		check(s.path+"/none", cache.ErrNotRead)
		srv.Accept()
		<-time.After(time.Minute)
		check(s.path+"/a", nil)
		check(s.path+"/none", framework.ErrNoNode)
		for _, path := range []string{"a", "", "/", "/other", s.path + "-other", s.path + "/a/deeper"} {
			check(path, cache.ErrOutside)
		}
		srv.Refuse()
		srv.Cut()
		<-time.After(time.Second)
		check(s.path+"/none", framework.ErrNoNode) // as far as the cache knows: see Stale
	})
}
