package hostile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// Limits of a run, in virtual time. The clients have the default options.
const (
	longestIdle = 12 * time.Second // beyond every deadline of the handshake, and beyond a ping
	longestCall = 30 * time.Second
	settle      = 90 * time.Second // three session timeouts, for everything that the client does by itself
	grace       = time.Second      // of a call whose context has ended
	longestStop = 20 * time.Second // of a recipe whose context has ended
	longestEnd  = 10 * time.Second // of Close
)

// Bounds of what a run does.
const (
	mostSteps  = 14
	stormCalls = 200     // of one kind that is never answered
	mostFrames = 100_000 // from the server; else something asks without a pause
	mostLeft   = 60      // goroutines of the client and of the recipes after a storm
)

// A run is one client under test at one server, and a second client that nothing harms.
type run struct {
	t      testing.TB
	script *script
	server *server
	client *framework.Client
	good   *framework.Client

	mu     sync.Mutex // guards following
	states []framework.State

	recipes     sync.WaitGroup
	stopRecipes context.CancelFunc
	recipesCtx  context.Context
	trees       []*framework.TreeWatch
	caches      []*cache.Cache
	elections   int
	leads       atomic.Int64 // elections that lead
	storms      int
}

// versions are those of the servers that differ for the client and know all operations that the runs use:
// whoAmI is from 3.7 on.
func versions() []string { return []string{"3.8.0", zkserver.DefaultVersion, "3.8.4", "3.9.6"} }

// play has the server and the client do what the script says. It runs in a bubble. The server's version
// follows from the script, so that a script fails again as it has failed.
func play(t testing.TB, given []byte) *server {
	t.Helper()
	s := &script{rest: given}
	rate, _ := s.next()
	version := versions()[crc32.ChecksumIEEE(given)%uint32(len(versions()))]
	srv := &server{Server: zkserver.Run(t, zkserver.WithVersion(version)), script: s, rate: int(rate), mute: make(map[proto.Opcode]bool)}
	r := &run{t: t, script: s, server: srv}
	r.recipesCtx, r.stopRecipes = context.WithCancel(context.Background())
	r.good = must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial)))(t)
	must.OK(t, r.good.AwaitConnected(t.Context()))
	for _, path := range []string{"/t/a/b", "/t/c", "/e", "/l"} {
		must.Get(r.good.Create(t.Context(), path, []byte("0"), framework.WithParents()))(t)
	}
	r.client = must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.dial), framework.WithStateListener(r.changed)))(t)
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	if err := r.client.AwaitConnected(ctx); err != nil && srv.harmed() == 0 {
		t.Error(err)
	}
	for range s.below(mostSteps) + 1 {
		r.step()
	}
	r.goroutinesEnd()
	r.recover()
	r.end()
	return srv
}

func (r *run) changed(change framework.StateChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, change.To)
}

// step does one thing.
func (r *run) step() {
	switch r.script.below(10) {
	case 0, 1:
		time.Sleep(r.script.upTo(longestIdle))
	case 2, 3:
		r.call(pick(r.script, calls()), time.Second+r.script.upTo(longestCall))
	case 4:
		var together sync.WaitGroup
		for range 1 + r.script.below(8) {
			call, limit := pick(r.script, calls()), time.Second+r.script.upTo(longestCall)
			together.Go(func() { r.call(call, limit) })
		}
		together.Wait()
	case 5:
		r.changeTree()
	case 6, 7:
		r.start()
	case 8:
		r.storm()
	case 9:
		r.server.mu.Lock()
		r.server.changed++ // what fails from now on has a reason
		r.server.mu.Unlock()
		if r.script.below(3) == 0 {
			_ = r.server.Expire(r.client.Session().ID) // there may be none
		}
		r.server.Cut()
	}
}

// A call is a request of the client's.
type call struct {
	name string
	op   proto.Opcode // that a storm leaves unanswered
	do   func(context.Context, *framework.Client) error
}

func calls() []call {
	return []call{
		{"Get", proto.OpGetData, func(ctx context.Context, c *framework.Client) error { _, _, err := c.Get(ctx, "/t/a"); return err }},
		{"Exists", proto.OpExists, func(ctx context.Context, c *framework.Client) error { _, _, err := c.Exists(ctx, "/t/x"); return err }},
		{"Children", proto.OpGetChildren2, func(ctx context.Context, c *framework.Client) error { _, _, err := c.Children(ctx, "/t"); return err }},
		{"ACL", proto.OpGetACL, func(ctx context.Context, c *framework.Client) error { _, _, err := c.ACL(ctx, "/t"); return err }},
		{"Set", proto.OpSetData, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/t/c", []byte("1"), framework.AnyVersion)
			return err
		}},
		{"Create", proto.OpCreate2, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/t/n-", nil, framework.Sequential(), framework.Ephemeral())
			return err
		}},
		{"CreateProtected", proto.OpCreate2, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/t/p-", nil, framework.Sequential(), framework.Ephemeral(), framework.Protected())
			return err
		}},
		{"Delete", proto.OpDelete, func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/t/x") }},
		{"DeleteTree", proto.OpGetChildren2, func(ctx context.Context, c *framework.Client) error { return c.DeleteTree(ctx, "/t/a") }},
		{"Txn", proto.OpMulti, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Txn(ctx, framework.OpSet("/t/c", nil, framework.AnyVersion), framework.OpCreate("/t/o-", nil, framework.Sequential()))
			return err
		}},
		{"Sync", proto.OpSync, func(ctx context.Context, c *framework.Client) error { return c.Sync(ctx, "/") }},
		{"Ready", proto.OpMulti, func(ctx context.Context, c *framework.Client) error { return c.Ready(ctx) }},
		{"WhoAmI", proto.OpWhoAmI, func(ctx context.Context, c *framework.Client) error { _, err := c.WhoAmI(ctx); return err }},
		{"Ephemerals", proto.OpGetEphemerals, func(ctx context.Context, c *framework.Client) error { _, err := c.Ephemerals(ctx, "/"); return err }},
		{"AddAuth", proto.OpAuth, func(ctx context.Context, c *framework.Client) error { return c.AddAuth(ctx, "digest", []byte("u:p")) }},
		{"Watch", proto.OpGetData, func(ctx context.Context, c *framework.Client) error {
			w, err := c.Watch(ctx, "/t/a", framework.WatchData)
			if err == nil {
				w.Close()
			}
			return err
		}},
		{"WatchTree", proto.OpAddWatch, func(ctx context.Context, c *framework.Client) error {
			w, err := c.WatchTree(ctx, "/t/c")
			if err == nil {
				w.Close()
			}
			return err
		}},
		{"HoldSession", proto.OpMulti, func(ctx context.Context, c *framework.Client) error {
			h, err := c.HoldSession(ctx)
			if err != nil {
				return err
			}
			defer h.Release()
			return h.Secure(ctx)
		}},
	}
}

// call makes one call, which has to return soon after the limit. If the server has done no harm, it
// has to succeed.
func (r *run) call(x call, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	start := time.Now()
	err := x.do(ctx, r.client)
	if took := time.Since(start); took > limit+grace {
		r.t.Errorf("%s returned after %v, its context ended after %v: %v", x.name, took, limit, err)
	}
	if err != nil && r.server.harmed() == 0 && !isAnswer(err) {
		r.t.Errorf("%s at a server that did no harm: %v", x.name, err)
	}
}

// isAnswer reports whether err is what the server answered because of the tree's state.
func isAnswer(err error) bool {
	for _, target := range []error{framework.ErrNoNode, framework.ErrNodeExists, framework.ErrBadVersion, framework.ErrNotEmpty} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// changeTree has the second client change what the first one watches.
func (r *run) changeTree() {
	ctx, cancel := context.WithTimeout(context.Background(), longestCall)
	defer cancel()
	for range 1 + r.script.below(20) {
		path := fmt.Sprintf("/t/a/%d", r.script.below(4))
		var err error
		switch r.script.below(3) {
		case 0:
			err = r.good.Delete(ctx, path)
		default:
			_, err = r.good.CreateOrSet(ctx, path, []byte{byte(r.script.below(256))}, framework.WithParents())
		}
		if err != nil && !isAnswer(err) {
			r.t.Errorf("the second client: %v", err)
		}
	}
}

// start starts a recipe that runs until the end.
func (r *run) start() {
	path := pick(r.script, []string{"/t", "/t/a", "/"})
	switch r.script.below(4) {
	case 0:
		ctx, cancel := context.WithTimeout(context.Background(), longestCall)
		defer cancel()
		w, err := r.client.WatchTree(ctx, path)
		if err != nil {
			return
		}
		r.trees = append(r.trees, w)
		r.recipes.Go(func() {
			for {
				if _, err := w.Next(r.recipesCtx); err != nil {
					return
				}
			}
		})
	case 1:
		c, err := cache.New(r.client, path)
		if err != nil {
			r.t.Errorf("a cache of %s: %v", path, err)
			return
		}
		r.caches = append(r.caches, c)
	case 2:
		r.elections++
		e := must.Get(leader.New(r.client, fmt.Sprintf("/e/%d", r.elections)))(r.t)
		r.recipes.Go(func() {
			for r.recipesCtx.Err() == nil { // a server may refuse for good
				_ = e.Run(r.recipesCtx, func(ctx context.Context, _ *lease.Lease) error {
					r.leads.Add(1)
					defer r.leads.Add(-1)
					<-ctx.Done()
					return ctx.Err()
				})
				pause(r.recipesCtx, time.Second)
			}
		})
	case 3:
		m := must.Get(lock.NewMutex(r.client, "/l/"+path[1:]+"x"))(r.t)
		r.recipes.Go(func() {
			for r.recipesCtx.Err() == nil {
				_ = lock.Do(r.recipesCtx, m, func(ctx context.Context, _ *lock.Lease) error {
					pause(ctx, time.Second)
					return nil
				})
				pause(r.recipesCtx, time.Second)
			}
		})
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// storm makes many calls of one kind that the server never answers, while it answers pings.
func (r *run) storm() {
	x := pick(r.script, calls())
	r.server.silence(x.op)
	r.storms++
	var together sync.WaitGroup
	for range stormCalls {
		together.Go(func() { r.call(x, time.Second) })
	}
	together.Wait()
}

// goroutinesEnd fails the test if goroutines of calls remain that have returned long ago. The server replies
// to new requests before, because the client repeats some: up to 32 deletions at a time, and the reads of
// a cache. It never replies to those that it has left out.
func (r *run) goroutinesEnd() {
	if r.storms == 0 {
		return
	}
	r.server.calm()
	time.Sleep(settle)
	if left := bubbled(); left > mostLeft {
		r.t.Errorf("%d goroutines %v after %d calls have returned, want at most %d", left, settle, r.storms*stormCalls, mostLeft)
	}
}

// bubbled returns how many goroutines are in the bubble.
func bubbled() (n int) {
	stacks := make([]byte, 8<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(", synctest bubble ")) // in the headers alone
}

// recover has the server behave well from now on. The client, and all that runs on it, has to serve
// again by itself in a new session.
func (r *run) recover() {
	r.server.calm()
	harmless := r.server.harmed() == 0
	if !harmless { // a lie about the session or its znodes ends with them
		r.endSession()
	}
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	for { // while a server is said to refuse a credential, AwaitConnected does not wait
		err := r.client.AwaitConnected(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			r.t.Errorf("at a server that behaves well again: %v", err)
			return
		}
		time.Sleep(time.Second)
	}
	if _, _, err := r.client.Get(ctx, "/"); err != nil {
		r.t.Errorf("at a server that behaves well again: %v", err)
	}
	for _, c := range r.caches {
		if err := c.Sync(ctx); err != nil {
			r.t.Errorf("a cache at a server that behaves well again: %v", err)
		}
	}
	deadline := time.Now().Add(settle)
	for r.leads.Load() < int64(r.elections) && time.Now().Before(deadline) {
		time.Sleep(time.Second)
	}
	if n := r.leads.Load(); n != int64(r.elections) {
		r.t.Errorf("%d of %d elections have a leader %v after the server behaves well again", n, r.elections, settle)
	}
	synctest.Wait() // the listener may not have been told yet
	r.mu.Lock()
	defer r.mu.Unlock()
	if harmless && !slices.Equal(r.states, []framework.State{framework.Connecting, framework.Connected}) {
		r.t.Errorf("states %v at a server that did no harm", r.states)
	}
}

// endSession ends the client's session, and waits until the client knows.
func (r *run) endSession() {
	former := r.client.Session().ID
	for _, s := range r.server.Sessions() {
		if s.ID != r.good.Session().ID {
			_ = r.server.Expire(s.ID) // it may end by itself
		}
	}
	r.server.Cut()
	deadline := time.Now().Add(settle)
	for r.client.Session().ID == former && time.Now().Before(deadline) {
		time.Sleep(time.Second)
	}
}

// end ends everything, and fails the test if that takes long.
func (r *run) end() {
	start := time.Now()
	r.stopRecipes()
	r.recipes.Wait()
	if took := time.Since(start); took > longestStop {
		r.t.Errorf("the recipes ended after %v", took)
	}
	for _, w := range r.trees {
		w.Close()
	}
	start = time.Now()
	for _, c := range r.caches {
		if err := c.Close(); err != nil {
			r.t.Errorf("close a cache: %v", err)
		}
	}
	_ = r.client.Close() // names the deletions that were not done
	if took := time.Since(start); took > longestEnd {
		r.t.Errorf("Close took %v", took)
	}
	must.OK(r.t, r.good.Close())
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if r.server.frames >= mostFrames {
		r.t.Errorf("%d frames from the server: something asks without a pause", r.server.frames)
	}
}
