package cache_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestClose(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c := s.Client(t)
		s.create(t, c, "/a", "1")
		made := s.ready(t, c, s.path)
		ended := make(chan struct{})
		go func() {
			for range made.Events(t.Context()) {
			}
			for range made.Snapshots(t.Context()) {
			}
			close(ended)
		}()
		closed := make(chan error, 1)
		made.OnEvent(func(e cache.Event) {
			if e.Kind == cache.Ready {
				closed <- made.Close()
				return
			}
			if made.Ready(t.Context()) != nil {
				t.Errorf("%v is told after Close", e.Kind)
			}
		})
		must.OK(t, <-closed)
		<-ended
		for range 2 {
			must.OK(t, made.Close())
		}
		for name, call := range map[string]func(context.Context) error{"Ready": made.Ready, "Sync": made.Sync} {
			if err := call(t.Context()); !errors.Is(err, framework.ErrClosed) {
				t.Errorf("%s after Close: %v", name, err)
			}
		}
		if _, err := made.Get(s.path + "/a"); err != nil {
			t.Error("Close emptied the cache")
		}
	})
}

func TestTheClientIsClosedFirst(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c := s.Client(t)
		made := s.ready(t, c, s.path)
		must.OK(t, c.Close())
		for range made.Events(t.Context()) { // ends
		}
		recipetest.Fails(t, "Ready of a cache whose client is closed", made.Ready(t.Context()), framework.ErrClosed)
		if _, stale := made.Stale(); !stale {
			t.Error("it is not stale")
		}
	})
}

func TestBadInput(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		_, err := cache.New(c, "a", nil, cache.WithDepth(-1), cache.WithFilter(nil))
		recipetest.Fails(t, "New", err, framework.ErrInvalidPath)
		recipetest.Says(t, err, "cache: new a", "option 0: must not be nil", "depth -1: must be 0 or more",
			"filter: the function must not be nil")
		_, err = cache.New(c, "/a", cache.WithFilter(func(string) bool { return false }))
		recipetest.Says(t, err, "filter: must accept the cache's own path")
	})
}

// The function of WithFilter may close the cache.
func TestCloseByTheFilter(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		must.Get(c.Create(t.Context(), "/a/b", nil, framework.WithParents()))(t)
		made, closed := make(chan *cache.Cache, 1), make(chan error, 1)
		made <- must.Get(cache.New(c, "/a", cache.WithFilter(func(path string) bool {
			if path == "/a/b" {
				of := <-made
				closed <- of.Close()
				made <- of
			}
			return true
		})))(t)
		must.OK(t, must.Receive(t, closed, "the end of Close"))
		must.OK(t, (<-made).Close())
	})
}
