package cachetest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m, zktest.WithLeakCheck()) }

// A lock's holder has a cache on an isolated follower, and sends addWatch and removeWatches again and
// again, which the follower answers alone. No such reply is a proof of the session, so the lease is lost
// before the next holder is granted. A cache that is filled sends no write behind which other requests
// wait, and neither does a heartbeat, as long as there are proofs.
func TestACacheIsNoProofOfTheSession(t *testing.T) {
	t.Parallel()
	const path = "/cachetest-proof"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		members := env.Members()
		follower, leader := members[0], members[len(members)-1]
		holder := follower.Client(t, framework.WithSessionTimeout(4*time.Second))
		next := leader.Client(t)
		mutex := func(c *framework.Client) *lock.Mutex {
			return must.Get(lock.NewMutex(c, path+"/lock"))(t)
		}
		lease := must.Get(mutex(holder).Lock(t.Context()))(t)
		observed := make(chan time.Time, 1)
		go func() {
			<-lease.Lost()
			observed <- time.Now()
		}()
		made := must.Get(cache.New(holder, path))(t)
		defer func() {
			if err := made.Close(); err != nil {
				t.Error(err)
			}
		}()
		must.OK(t, made.Ready(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		opened := make(chan struct{})
		go func() {
			defer close(opened)
			watchAgainAndAgain(ctx, holder, path+"/other")
		}()
		follower.Isolate(t)
		second, err := mutex(next).Lock(t.Context())
		granted := time.Now()
		cancel()
		<-opened
		if err != nil {
			t.Fatal(err)
		}
		if lost := <-observed; !lost.Before(granted) {
			t.Errorf("lost %v after the next was granted", lost.Sub(granted))
		}
		must.OK(t, second.Release(t.Context()))
	}, zkenv.Breakable(), zkenv.Only("a follower has to be isolated", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
}

// A cache of 1,000 znodes of 16 kB is filled over a link of 20 Mbit/s by a client that holds a lock.
// That takes longer than the session timeout. The connection is not cut, because replies arrive all
// the time, and the lease is not lost, because a heartbeat does not wait behind all of them.
func TestAFillOverASlowLink(t *testing.T) {
	t.Parallel()
	const znodes, timeout = 1000, 4 * time.Second
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		other, route := env.Client(t), env.Route(t)
		path, data := "/cachetest-"+rand.Text(), make([]byte, 16<<10)
		for i := range znodes {
			if i%100 == 0 {
				dir := fmt.Sprintf("%s/%d", path, i/100)
				must.Get(other.Create(t.Context(), dir, nil, framework.WithParents()))(t)
			}
			must.Get(other.Create(t.Context(), fmt.Sprintf("%s/%d/%d", path, i/100, i), data))(t)
		}
		holder := route.Client(t, framework.WithSessionTimeout(timeout))
		mutex := must.Get(lock.NewMutex(holder, path+"-lock"))(t)
		lease := must.Get(mutex.Lock(t.Context()))(t)
		connections := route.Count(fault.Connect)
		route.SetBandwidth(20e6 / 8)
		made := must.Get(cache.New(holder, path))(t)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
		defer cancel()
		must.OK(t, made.Ready(ctx))
		took := time.Since(began)
		if n := made.Snapshot().Len(); n != znodes+znodes/100+1 {
			t.Errorf("the cache has %d znodes after %v", n, took)
		}
		if took < timeout {
			t.Errorf("the fill took %v, less than the session timeout: it shows nothing", took)
		}
		if n := route.Count(fault.Connect) - connections; n != 0 {
			t.Errorf("%d connections more: the first was cut", n)
		}
		must.OK(t, lease.Err())
		route.SetBandwidth(0)
		must.OK(t, errors.Join(made.Close(), lease.Release(t.Context())))
	}, zkenv.Only("one link is enough", zkenv.Embedded, zkenv.Standalone))
}

// watchAgainAndAgain sets and removes a recursive watch until ctx ends.
func watchAgainAndAgain(ctx context.Context, c *framework.Client, path string) {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		if w, err := c.WatchTree(ctx, path); err == nil {
			w.Close()
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}
