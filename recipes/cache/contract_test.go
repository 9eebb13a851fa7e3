package cache_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/cachetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestCachesKeepTheirPromisesUnderFaults(t *testing.T) {
	t.Parallel()
	cachetest.Run(t, cache.New)
}

// The server of the cache's client lags behind: the cache is not ready before it has caught up.
func TestReadyWaitsForAServerThatLags(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		members := s.Members()
		follower, leader := members[0], members[len(members)-1]
		c, other := follower.Client(t), leader.Client(t)
		s.create(t, other, "/a", "1")
		must.OK(t, c.Sync(t.Context(), "/"))
		follower.Isolate(t)
		s.set(t, other, "/a", "2")
		made := s.open(t, c, s.path)
		ctx := recipetest.Within(t, time.Second)
		recipetest.Fails(t, "Ready of a cache whose server lags", made.Ready(ctx), context.DeadlineExceeded)
		follower.Heal()
		mustReady(t, made)
		if n, _ := made.Get(s.path + "/a"); string(n.Data) != "2" {
			t.Errorf("the cache has %q, want what was committed before New", n.Data)
		}
	}, zkenv.Breakable(), zkenv.Only("a server has to lag", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
}

// The path is deleted and created again between the watch and the reads: what was committed before the
// fill's transaction is there when Ready returns, without Sync.
func TestReadyHasWhatCameBeforeTheFill(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		other, route := s.Client(t), s.Route(t)
		s.create(t, other, "", "old")
		asked := route.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.DelayRequest, Delay: 300 * time.Millisecond})
		made := s.open(t, route.Client(t), s.path)
		<-asked.Hit()
		s.delete(t, other, "")
		s.create(t, other, "", "new")
		mustReady(t, made)
		if n, err := made.Get(s.path); err != nil || string(n.Data) != "new" {
			t.Errorf("Ready returned with %q, %v", n.Data, err)
		}
	})
}

// A transaction that changes nothing is answered after all that was committed before it, by the
// leader and by a follower.
func TestReadyAndSyncOnEachMember(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		members := s.Members()
		other := s.Client(t)
		s.create(t, other, "", "0")
		var all []*cache.Cache
		for _, m := range members {
			all = append(all, s.ready(t, m.Client(t), s.path))
		}
		for i := range 50 {
			data := fmt.Sprint(i)
			s.set(t, other, "", data)
			s.want(t, all[i%len(all)], map[string]string{"": data})
		}
	}, zkenv.Only("members differ", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
}

func TestAChildThatDiesWhileItIsReadDoesNotKeepReadyWaiting(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		other, route := s.Client(t), s.Route(t)
		for i := range 5 {
			s.create(t, other, fmt.Sprintf("/%d/x", i), "")
		}
		for _, op := range []fault.Op{fault.GetData, fault.MultiRead} {
			route.Rules().Add(fault.Rule{Op: op, Path: s.path + "/3", Action: fault.DelayRequest, Delay: 300 * time.Millisecond})
		}
		held := route.Rules().Add(fault.Rule{Path: s.path + "/3", Action: fault.Pass})
		listed := route.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: s.path + "/4", Action: fault.DelayRequest, Delay: 300 * time.Millisecond})
		made := s.open(t, route.Client(t), s.path)
		<-held.Hit()
		s.delete(t, other, "/3/x")
		s.delete(t, other, "/3")
		<-listed.Hit()
		s.delete(t, other, "/4/x")
		s.delete(t, other, "/4")
		mustReady(t, made)
		s.want(t, made, map[string]string{"": "", "/0": "", "/0/x": "", "/1": "", "/1/x": "", "/2": "", "/2/x": ""})
	})
}

// wchp is what a real server tells of its watches.
func TestCloseRemovesTheWatch(t *testing.T) {
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		s := &scene{env, "/cache-closed"}
		server := zktest.Shared(t)
		c := must.Get(framework.NewClient(server.Addr()))(t)
		defer c.Close()
		s.create(t, c, "/a", "")
		watched := func() bool {
			answer := must.Get(server.FourLetter(t.Context(), "wchp"))(t)
			return strings.Contains(answer, s.path)
		}
		made := s.ready(t, c, s.path)
		if !watched() {
			t.Error("the server has no watch of the cache")
		}
		must.OK(t, made.Close())
		zktest.Eventually(t, recipetest.Generous, "the watch is gone", func() bool { return !watched() })
	}, zkenv.Only("a server that lists watches", zkenv.Standalone))
}

// Ready says that a server does not know recursive watches. The next server may know them.
func TestReadyOnAServerThatIsTooOld(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		var renewed atomic.Bool
		c := recipetest.Client(t, srv.Addr(), framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := srv.Dial(ctx, network, addr)
			return oldConn{conn, &renewed}, err
		}))
		s := &scene{nil, "/cache"}
		s.create(t, recipetest.ClientOf(t, srv), "/a", "1")
		made := s.open(t, c, s.path)
		err := made.Ready(recipetest.Within(t, time.Minute))
		recipetest.Fails(t, "Ready", err, framework.ErrUnsupported)
		recipetest.Says(t, err, "addWatch, which ZooKeeper has since 3.6")
		renewed.Store(true)
		<-time.After(time.Minute)
		s.want(t, made, map[string]string{"": "", "/a": "1"})
		mustReady(t, made)
	})
}

// An oldConn sends an opcode that no server knows for addWatch, until the server is renewed.
type oldConn struct {
	net.Conn
	renewed *atomic.Bool
}

func (c oldConn) Write(p []byte) (int, error) {
	if len(p) >= 12 && binary.BigEndian.Uint32(p[8:]) == 106 && !c.renewed.Load() {
		p = slices.Clone(p)
		binary.BigEndian.PutUint32(p[8:], 999)
	}
	return c.Conn.Write(p)
}

func TestWhatMayNotBeReadIsLeftOut(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		owner := s.Client(t, framework.WithAuth("digest", []byte("cache:secret")))
		c := s.Client(t)
		private := framework.WithACL(acl.Entry{Perms: acl.All, Scheme: "auth"})
		s.create(t, owner, "/a", "1")
		s.create(t, owner, "/no", "", private)
		s.create(t, owner, "/no/below", "")
		made := s.ready(t, c, s.path)
		s.want(t, made, map[string]string{"": "", "/a": "1"})
		s.set(t, owner, "/no/below", "2")
		s.want(t, made, map[string]string{"": "", "/a": "1"})
		unread := maps.Collect(made.Snapshot().Unread())
		if err := unread[s.path+"/no"]; len(unread) != 1 || !errors.Is(err, framework.ErrNoAuth) {
			t.Errorf("unread: %v", unread)
		}
		refused := s.open(t, c, s.path+"/no")
		recipetest.Fails(t, "Ready of a cache of what may not be read", refused.Ready(t.Context()), framework.ErrNoAuth)
		recipetest.Fails(t, "Sync of a cache of what may not be read", refused.Sync(t.Context()), framework.ErrNoAuth)
		s.want(t, s.ready(t, owner, s.path), map[string]string{"": "", "/a": "1", "/no": "", "/no/below": "2"})
	})
}

// Requests are counted at the server.
func TestRequestsOfACache(t *testing.T) {
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		s := &scene{env, "/cache-requests"}
		other, route := env.Client(t), env.Route(t)
		for i := range 20 { // 26 znodes, of which 6 have children
			s.create(t, other, fmt.Sprintf("/%d/%d", i/4, i), "")
		}
		c := route.Client(t)
		count := func(what string, want map[fault.Op]int, fn func()) {
			t.Helper()
			before := make(map[fault.Op]int)
			for op := fault.Create; op < fault.Connect; op++ {
				before[op] = route.Count(op)
			}
			fn()
			env.Quiesce()
			for op := fault.Create; op < fault.Connect; op++ {
				if got := route.Count(op) - before[op]; op != fault.Ping && got != want[op] {
					t.Errorf("%s: %d requests of %v, want %d", what, got, op, want[op])
				}
			}
		}
		var made *cache.Cache
		count("a fill", map[fault.Op]int{fault.Multi: 1, fault.AddWatch: 1, fault.GetData: 6, fault.MultiRead: 4, fault.GetChildren: 6}, func() {
			made = s.ready(t, c, s.path)
		})
		j := cachetest.Record(made)
		j.Await(t, "ready")
		count("a change", map[fault.Op]int{fault.GetData: 1}, func() {
			s.set(t, other, "/0/1", "x")
			j.Await(t, "changed /0/1=x")
		})
		count("a creation", map[fault.Op]int{fault.GetData: 1}, func() {
			s.create(t, other, "/0/new", "")
			j.Await(t, "added /0/new=")
		})
		count("a deletion", nil, func() {
			s.delete(t, other, "/0/1")
			j.Await(t, "removed /0/1=x")
		})
		count("Sync", map[fault.Op]int{fault.Multi: 1}, func() { mustSync(t, made) })
		count("a reconnection", map[fault.Op]int{fault.Multi: 1, fault.AddWatch: 1, fault.GetData: 1, fault.MultiRead: 3, fault.GetChildren: 6}, func() {
			route.Cut()
			j.Await(t, "stale")
			j.Await(t, "ready")
		})
		count("Close", map[fault.Op]int{fault.RemoveWatches: 1}, func() {
			must.OK(t, made.Close())
		})
		if changes := j.Count("changed /0/1=x"); changes != 1 {
			t.Errorf("%d events of one change", changes)
		}
	}, zkenv.Only("one server counts them all", zkenv.Embedded, zkenv.Standalone))
}
