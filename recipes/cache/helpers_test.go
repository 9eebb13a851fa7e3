package cache_test

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/recipetest"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/zkenv"
)

// A maker is cache.New, or what takes its place.
type maker func(c *framework.Client, path string, opts ...cache.Option) (*cache.Cache, error)

func makers() map[string]maker {
	return map[string]maker{"recursive": cache.New, "two watches": cache.NewEach}
}

// A scene is one run of a test.
type scene struct {
	*zkenv.Env
	make maker
	path string // unique
	name string // of make
}

// each runs body in each environment, with a recursive watch and with two watches for each znode.
func each(t *testing.T, body func(t *testing.T, s *scene), opts ...zkenv.Option) {
	t.Helper()
	for name, make := range makers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				body(t, &scene{env, make, "/cache-" + rand.Text(), name})
			}, opts...)
		})
	}
}

// open returns a cache that is closed when the test has ended.
func (s *scene) open(t testing.TB, c *framework.Client, path string, opts ...cache.Option) *cache.Cache {
	t.Helper()
	made, err := s.make(c, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
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
	ctx, cancel := context.WithTimeout(t.Context(), recipetest.Generous)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

func mustSync(t testing.TB, c *cache.Cache) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recipetest.Generous)
	defer cancel()
	if err := c.Sync(ctx); err != nil {
		t.Fatal(err)
	}
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
	if _, err := c.Create(t.Context(), full, []byte(data), opts...); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) set(t testing.TB, c *framework.Client, path, data string) {
	t.Helper()
	if _, err := c.Set(t.Context(), s.path+path, []byte(data), framework.AnyVersion); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) delete(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	if err := c.Delete(t.Context(), s.path+path); err != nil {
		t.Fatal(err)
	}
}
