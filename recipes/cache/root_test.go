package cache_test

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// No transaction created the root: its Czxid is 0. A cache of it has what was there nevertheless.
func TestCacheOfTheRoot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
		c := newClient(t, srv, srv.Dial)
		must.Get(c.Create(t.Context(), "/a/b", []byte("data"), framework.WithParents()))(t)
		made := must.Get(cache.New(c, "/", cache.WithFilter(func(path string) bool { return path != "/zookeeper" })))(t)
		mustReady(t, made)
		if got, want := contents(made.Snapshot()), map[string]string{"/": "", "/a": "", "/a/b": "data"}; !maps.Equal(got, want) {
			t.Errorf("the cache has %v, want %v", got, want)
		}
		must.OK(t, made.Close())
	})
}
