package cachetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/lock"
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
	zkenv.ForEach(t, func(t *testing.T, w *zkenv.Env) {
		members := w.Members()
		follower, leader := members[0], members[len(members)-1]
		holder := follower.Client(t, framework.WithSessionTimeout(4*time.Second))
		next := leader.Client(t)
		mutex := func(c *framework.Client) *lock.Mutex {
			m := must.Get(lock.NewMutex(c, path+"/lock"))(t)
			return m
		}
		lease, err := mutex(holder).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		observed := make(chan time.Time, 1)
		go func() {
			<-lease.Lost()
			observed <- time.Now()
		}()
		made, err := cache.New(holder, path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := made.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := made.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
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
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}, zkenv.Breakable(), zkenv.Only("a follower has to be isolated", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
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
