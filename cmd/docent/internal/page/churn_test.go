package page_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// A watcher is a page of an embedded server, in virtual time. It samples what a new tab would show.
type watcher struct {
	t      *testing.T
	server *zkserver.Server
	page   *page.Server
}

// watched runs body with the page of the locks below /locks.
func watched(t *testing.T, body func(t *testing.T, w *watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{t: t, server: zkserver.Run(t, zkenv.DrawVersion(t)...)}
		live := must.Get(inspect.Follow(w.client(), "/locks", inspect.FollowLimits{}))(t)
		w.page = page.NewServer(page.Config{Source: live, Token: token, Hosts: []string{"docent"}})
		ctx, cancel := context.WithCancel(context.Background()) // until the clean-up
		var collecting sync.WaitGroup
		collecting.Go(func() { w.page.Collect(ctx) })
		t.Cleanup(func() {
			cancel()
			collecting.Wait()
			must.OK(t, live.Close())
		})
		body(t, w)
	})
}

func (w *watcher) client() *framework.Client {
	w.t.Helper()
	return apptest.Client(w.t, w.server.Addr(), framework.WithDialer(w.server.Dial))
}

// dead returns what the snapshot shows in red: the paths of rows, and the locks of edges.
func (s *snapshot) dead() []string {
	var found []string
	for _, r := range s.Rows {
		if r.Mark == "dead" {
			found = append(found, r.Path)
		}
	}
	for _, e := range s.Graph.Edges {
		if e.Mark == "dead" {
			found = append(found, e.Lock)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// possible returns what it shows as a warning.
func (s *snapshot) possible() []string {
	var found []string
	for _, r := range s.Rows {
		if r.Mark == "possible" {
			found = append(found, r.Path)
		}
	}
	slices.Sort(found)
	return found
}

// A firstMessage keeps the first message of a stream, and then ends it.
type firstMessage struct {
	*httptest.ResponseRecorder
	end context.CancelFunc
}

func (m *firstMessage) SetWriteDeadline(time.Time) error { return nil }

func (m *firstMessage) FlushError() error { m.end(); return nil }

// sample opens a tab, and returns the snapshot that it gets.
func (w *watcher) sample() snapshot {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://docent/events", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	m := &firstMessage{httptest.NewRecorder(), cancel}
	w.page.ServeHTTP(m, r)
	return readSnapshot(w.t, m.Body) // another message may follow
}

// A curator is a client with the znodes of Curator's mutexes: the session and the address are all that
// they show.
type curator struct {
	t       *testing.T
	client  *framework.Client
	pick    *rand.Rand
	address string
}

func newCurator(t *testing.T, c *framework.Client, seed, thread uint64) *curator {
	return &curator{t, c, rand.New(rand.NewPCG(seed, thread)), "10.0.3.9"}
}

// contend creates a znode in the queue of the lock.
func (c *curator) contend(path string) (znode string) {
	c.t.Helper()
	name := fmt.Sprintf("%s/_c_%08x-0000-4000-8000-%012x-lock-", path, c.pick.Uint32(), c.pick.Uint64()>>16)
	znode, err := c.client.Create(c.t.Context(), name, []byte(c.address), framework.WithParents(), framework.Ephemeral(), framework.Sequential())
	if err != nil {
		c.t.Error(err)
	}
	return znode
}

// acquire waits until the znode is the first of its queue.
func (c *curator) acquire(path string) (znode string) {
	c.t.Helper()
	for znode = c.contend(path); ; <-time.After(10 * time.Millisecond) {
		names, _, err := c.client.Children(c.t.Context(), path)
		if err != nil {
			c.t.Error(err)
			return znode
		}
		own := znode[len(znode)-10:]
		if !slices.ContainsFunc(names, func(name string) bool { return name[len(name)-10:] < own }) {
			return znode
		}
	}
}

// deadlock has two clients wait for each other, at /locks/one and /locks/two.
func (w *watcher) deadlock() (one, two *curator) {
	w.t.Helper()
	one, two = newCurator(w.t, w.client(), 1, 1), newCurator(w.t, w.client(), 2, 2)
	one.acquire("/locks/one")
	two.acquire("/locks/two")
	one.contend("/locks/two")
	two.contend("/locks/one")
	return one, two
}

func (c *curator) release(znode string) {
	c.t.Helper()
	if err := c.client.Delete(c.t.Context(), znode); err != nil {
		c.t.Error(err)
	}
}

// churn has three clients with four threads each use six locks, each thread one lock at a time, until
// ctx ends.
func (w *watcher) churn(ctx context.Context, wg *sync.WaitGroup) {
	for session := range uint64(3) {
		client := w.client()
		for thread := range uint64(4) {
			c := newCurator(w.t, client, session, thread)
			wg.Go(func() {
				for ctx.Err() == nil {
					znode := c.acquire(fmt.Sprintf("/locks/busy-%d", c.pick.IntN(6)))
					<-time.After(time.Duration(100+c.pick.IntN(900)) * time.Millisecond)
					c.release(znode)
				}
			})
		}
	}
}

// Threads of three Curator clients that use one lock at a time never wait for each other, although their sessions
// seem to, at every moment. Among them a deadlock of two owners is found, and nothing else is red or a warning.
func TestPage_shows_a_deadlock_among_threads_with_one_lock(t *testing.T) {
	t.Parallel()
	watched(t, func(t *testing.T, w *watcher) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		w.churn(ctx, &all)
		client := w.client()
		var begun time.Time
		var shown time.Duration
		// How long a sample takes depends on the server's version.
		for live := 0; begun.IsZero() || time.Since(begun) < 15*time.Second; <-time.After(100 * time.Millisecond) {
			s := w.sample()
			if s.Summary.State == "live" {
				live++
			}
			if live == 100 && begun.IsZero() {
				begun = time.Now()
				for _, order := range [][]string{{"/locks/one", "/locks/two"}, {"/locks/two", "/locks/one"}} {
					all.Go(func() { lockBoth(ctx, t, client, order) })
				}
			}
			switch got := strings.Join(s.dead(), " "); {
			case got == "/locks/one /locks/two" && s.Summary.Deadlocks == 1 && len(s.Findings) == 1:
				if shown == 0 {
					shown = time.Since(begun)
				}
			case got != "" || len(s.Findings) > 0 || shown > 0 || ctx.Err() != nil:
				t.Fatalf("after %d live samples %q is red, findings %+v", live, got, s.Findings)
			}
		}
		if shown == 0 || shown > 6*time.Second {
			t.Errorf("the deadlock was shown after %v", shown)
		}
	})
}

// lockBoth acquires two mutexes, with a pause between the two, and releases them when ctx has ended.
func lockBoth(ctx context.Context, t *testing.T, c *framework.Client, paths []string) {
	t.Helper()
	for _, path := range paths {
		m, err := lock.NewMutex(c, path)
		if err != nil {
			t.Error(err)
			return
		}
		l, err := m.Lock(ctx)
		if err != nil {
			return // ctx has ended
		}
		defer func() {
			if err := l.Release(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		}()
		<-time.After(time.Second)
	}
}

// Two Curator clients may be in a deadlock: their znodes show sessions alone. That is a warning, and two seconds old
// before it is shown. If a session certainly has several threads, nothing shows which of them holds and which waits:
// the warning is a minute old then. Nothing need change in that time.
func TestPage_warns_of_a_deadlock_of_sessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		threads     bool
		least, most time.Duration
	}{"of sessions": {false, 2 * time.Second, 5 * time.Second}, "of threads": {true, time.Minute, 65 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watched(t, func(t *testing.T, w *watcher) {
				one, two := w.deadlock()
				if c.threads {
					two.acquire("/locks/three")
					two.acquire("/locks/four")
					one.contend("/locks/four")
				}
				begun, shown := time.Now(), time.Duration(0)
				for ; time.Since(begun) < c.most+5*time.Second; <-time.After(50 * time.Millisecond) {
					s := w.sample()
					got := strings.Join(s.possible(), " ")
					if shown == 0 && len(s.Findings) == 1 && s.Findings[0].Severity == "warning" && got == "/locks/one /locks/two" {
						shown = time.Since(begun)
					}
					if (shown == 0) != (len(s.Findings) == 0) || len(s.dead()) > 0 || s.Summary.Deadlocks > 0 {
						t.Fatalf("after %v: %+v, possible %q, red %q", time.Since(begun), s.Findings, got, s.dead())
					}
				}
				if shown < c.least || shown > c.most {
					t.Errorf("the warning was shown after %v", shown)
				}
			})
		})
	}
}
