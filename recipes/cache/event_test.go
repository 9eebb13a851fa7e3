package cache_test

import (
	"testing"

	"github.com/docent-go/docent/recipes/cache"
)

func TestAnEventHasThePathOfItsZnode(t *testing.T) {
	t.Parallel()
	znode := cache.Node{Path: "/config/web"}
	for _, e := range []cache.Event{
		{Kind: cache.Added, New: znode},
		{Kind: cache.Changed, Old: znode, New: znode},
		{Kind: cache.Removed, Old: znode},
	} {
		if got := e.Path(); got != znode.Path {
			t.Errorf("%v: path %q, want %q", e.Kind, got, znode.Path)
		}
	}
	if got := (cache.Event{Kind: cache.Ready}).Path(); got != "" {
		t.Errorf("ready: path %q, want none", got)
	}
}
