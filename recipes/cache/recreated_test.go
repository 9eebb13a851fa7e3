package cache_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/cachetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// A parent was created again during an outage. A child that is created below it while the cache reads
// everything again is added once: it is not removed with the former parent.
func TestAChildCreatedDuringTheResyncIsAddedOnce(t *testing.T) {
	for _, depth := range []string{"", "/b", "/b/c"} {
		t.Run(fmt.Sprintf("depth %d", strings.Count(depth, "/")+2), func(t *testing.T) {
			each(t, func(t *testing.T, s *scene) {
				other, route := s.Client(t), s.Route(t)
				dirs := []string{"/a", "/a/b", "/a/b/c"}
				s.create(t, other, "/a/b/c/old", "")
				made := s.ready(t, route.Client(t), s.path)
				j := cachetest.Record(made)
				j.Await(t, "ready")
				route.Refuse()
				route.Cut()
				j.Await(t, "stale")
				s.delete(t, other, "/a/b/c/old")
				for i := range dirs {
					s.delete(t, other, dirs[len(dirs)-1-i])
				}
				s.create(t, other, "/a/b/c", "")
				asked := route.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.DelayRequest, Delay: 300 * time.Millisecond})
				route.Heal()
				<-asked.Hit() // the watch is valid
				s.create(t, other, "/a"+depth+"/new", "")
				s.create(t, other, "/a"+depth+"/new/below", "")
				mustSync(t, made)
				j.Check(t, made.Snapshot())
				for _, path := range []string{"/new", "/new/below"} {
					line := "added /a" + depth + path + "="
					if n := j.Count(line); n != 1 {
						t.Errorf("%d events %q, want 1: %q", n, line, j.Lines())
					}
				}
			})
		})
	}
}

// A znode is created again between the read of its data and the listing of
// its children.
func TestAListingOfAnotherZnode(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		other, route := s.Client(t), s.Route(t)
		s.create(t, other, "/a", "old")
		client := route.Client(t)
		listed := route.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: s.path + "/a", Action: fault.DelayRequest, Delay: 300 * time.Millisecond})
		s.create(t, other, "/a/x", "") // else it is not listed
		made := s.open(t, client, s.path)
		j := cachetest.Record(made)
		<-listed.Hit()
		s.delete(t, other, "/a/x")
		s.delete(t, other, "/a")
		s.create(t, other, "/a", "new")
		s.create(t, other, "/a/y", "")
		mustReady(t, made)
		s.want(t, made, map[string]string{"": "", "/a": "new", "/a/y": ""})
		j.Check(t, made.Snapshot())
		if n := j.Count("added /a/y="); n != 1 {
			t.Errorf("%d events that add /a/y: %q", n, j.Lines())
		}
	})
}

// 60 writers create nested znodes all the time, so that the cache always has some to list. Sync and Ready wait
// for what was there when they were called, and for nothing that came later.
func TestSyncAndReadyWhileZnodesAreCreated(t *testing.T) {
	eachVirtually(t, func(t *testing.T, s *scene, srv *zkserver.Server) {
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
		proxy.SetLatency(100 * time.Millisecond)
		other, c := recipetest.ClientOf(t, srv), recipetest.Client(t, srv.Addr(), framework.WithDialer(proxy.Dial))
		s.create(t, other, "", "")
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		defer writers.Wait()
		defer cancel()
		for i := range 60 {
			writers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					path := fmt.Sprintf("%s/%d-%d", s.path, i, n)
					for range 4 {
						if _, err := other.Create(ctx, path, nil); err != nil {
							return
						}
						path += "/x"
						sleepOrEnd(ctx, 50*time.Millisecond)
					}
				}
			})
		}
		made := s.open(t, c, s.path)
		limit, stop := context.WithTimeout(t.Context(), 6*time.Second)
		defer stop()
		must.OK(t, made.Ready(limit))
		must.OK(t, made.Sync(limit))
	})
}

// The root's data are written once while the first batches of its many children are read.
func TestReadyWhileTheRootOfManyIsWritten(t *testing.T) {
	eachVirtually(t, func(t *testing.T, s *scene, srv *zkserver.Server) {
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
		proxy.SetLatency(100 * time.Millisecond)
		other, c := recipetest.ClientOf(t, srv), recipetest.Client(t, srv.Addr(), framework.WithDialer(proxy.Dial))
		s.create(t, other, "", "")
		for i := range 2500 {
			s.create(t, other, fmt.Sprintf("/%d", i), "")
		}
		made := s.open(t, c, s.path)
		<-time.After(700 * time.Millisecond) // the root has been listed, its children are being read
		must.Get(other.Set(t.Context(), s.path, []byte("again"), framework.AnyVersion))(t)
		must.OK(t, made.Ready(recipetest.Within(t, 10*time.Second)))
		if n := made.Snapshot().Len(); n != 2501 {
			t.Errorf("%d znodes, want 2501", n)
		}
	})
}

func sleepOrEnd(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// The connection breaks when the last reply of a fill has come, and the cache still works on it. The cache is
// not ready: nothing tells it of changes.
func TestAFillThatOutlivesItsConnectionIsNotReady(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/outlived"
		must.Get(env.Client(t).Create(t.Context(), path+"/last", nil, framework.WithParents()))(t)
		route := env.Route(t)
		c := route.Client(t)
		at, goOn := make(chan struct{}, 100), make(chan struct{})
		made := must.Get(cache.New(c, path, cache.WithFilter(func(path string) bool {
			if !strings.HasSuffix(path, "/last") {
				return true
			}
			at <- struct{}{}
			<-goOn
			return false
		})))(t)
		t.Cleanup(func() { must.OK(t, made.Close()) })
		j := cachetest.Record(made)
		must.Receive(t, at, "the last znode")
		route.Refuse()
		route.Cut()
		zktest.Eventually(t, time.Minute, "the connection is broken", func() bool { return c.State() != framework.Connected })
		close(goOn)
		env.Quiesce()
		if lines := j.Lines(); slices.Contains(lines, "ready") {
			t.Errorf("without a connection: %q", lines)
		}
		route.Heal()
		j.Await(t, "ready")
	}, zkenv.Only("in virtual time nothing else happens", zkenv.Embedded))
}
