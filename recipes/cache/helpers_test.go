package cache_test

import (
	"crypto/rand"
	"errors"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// A scene is one run of a test.
type scene struct {
	*zkenv.Env
	path string // unique
}

// each runs body in each environment.
func each(t *testing.T, body func(t *testing.T, s *scene), opts ...zkenv.Option) {
	t.Helper()
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) { body(t, &scene{env, "/cache-" + rand.Text()}) }, opts...)
}

// eachVirtually runs body with an embedded server in virtual time, of a version that is drawn without opts.
// The scene has no environment.
func eachVirtually(t *testing.T, body func(t *testing.T, s *scene, srv *zkserver.Server), opts ...zkserver.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := opts
		if len(of) == 0 {
			of = zkenv.DrawVersion(t)
		}
		body(t, &scene{nil, "/cache"}, zkserver.Run(t, of...))
	})
}

// open returns a cache that is closed when the test has ended.
func (s *scene) open(t testing.TB, c *framework.Client, path string, opts ...cache.Option) *cache.Cache {
	t.Helper()
	made := must.Get(cache.New(c, path, opts...))(t)
	t.Cleanup(func() { must.OK(t, made.Close()) })
	return made
}

// ready returns a cache that is ready.
func (s *scene) ready(t testing.TB, c *framework.Client, path string, opts ...cache.Option) *cache.Cache {
	t.Helper()
	made := s.open(t, c, path, opts...)
	mustReady(t, made)
	return made
}

func mustReady(t testing.TB, c *cache.Cache) {
	t.Helper()
	must.OK(t, c.Ready(recipetest.Patient(t)))
}

func mustSync(t testing.TB, c *cache.Cache) {
	t.Helper()
	must.OK(t, c.Sync(recipetest.Patient(t)))
}

// contents returns the data of the znodes of a snapshot, by path.
func contents(s *cache.Snapshot) map[string]string {
	found := make(map[string]string)
	for path, n := range s.All() {
		found[path] = string(n.Data)
	}
	return found
}

// want fails the test unless the cache, once synced, has these znodes below the scene's path.
func (s *scene) want(t testing.TB, c *cache.Cache, want map[string]string) {
	t.Helper()
	mustSync(t, c)
	absolute := make(map[string]string)
	for path, data := range want {
		absolute[s.path+path] = data
	}
	if got := contents(c.Snapshot()); !maps.Equal(got, absolute) {
		t.Errorf("the cache has %v, want %v", got, absolute)
	}
}

// create creates a znode, and its missing parents: as persistent ones, because the server reaps containers.
func (s *scene) create(t testing.TB, c *framework.Client, path, data string, opts ...framework.CreateOption) {
	t.Helper()
	full := s.path + path
	for i := 1; i < len(full); i++ {
		if full[i] != '/' {
			continue
		}
		if _, err := c.Create(t.Context(), full[:i], nil); err != nil && !errors.Is(err, framework.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	must.Get(c.Create(t.Context(), full, []byte(data), opts...))(t)
}

func (s *scene) set(t testing.TB, c *framework.Client, path, data string) {
	t.Helper()
	must.Get(c.Set(t.Context(), s.path+path, []byte(data), framework.AnyVersion))(t)
}

func (s *scene) delete(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	must.OK(t, c.Delete(t.Context(), s.path+path))
}
