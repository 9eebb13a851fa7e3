package history_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
)

const (
	brokenPath = "/broken"
	// brokenSession is short, so that a client that is cut off loses it within the run.
	brokenSession = 4 * time.Second
	brokenRun     = 20 * time.Second
)

// heedless is a lease that never learns of its loss.
type heedless struct{ *lock.Lease }

func (heedless) Err() error            { return nil }
func (heedless) Lost() <-chan struct{} { return nil }
func (heedless) Path() string          { return brokenPath }

// elsewhere is a lease of a path that no other test locks.
type elsewhere struct{ *lock.Lease }

func (elsewhere) Path() string { return brokenPath }

// A taker makes the function by which a client gets leases.
type taker func(t testing.TB, c *framework.Client, client string) func(context.Context) (history.Lease, error)

// take returns a taker of mutexes at a path, whose leases are passed through wrap.
func take(path func(client string) string, wrap func(*lock.Lease) history.Lease) taker {
	return func(t testing.TB, c *framework.Client, client string) func(context.Context) (history.Lease, error) {
		t.Helper()
		m := must.Get(lock.NewMutex(c, path(client)))(t)
		return func(ctx context.Context) (history.Lease, error) {
			l, err := m.Lock(ctx)
			if err != nil {
				return nil, err
			}
			return wrap(l), nil
		}
	}
}

// A lock that is broken is found out, by the check that is for it; one that is whole
// passes the same run.
func TestBrokenLocksAreFound(t *testing.T) {
	t.Parallel()
	one := func(string) string { return brokenPath }
	for _, c := range []struct {
		name             string
		take             taker
		wantOK, wantLate bool
	}{
		{"is whole", take(one, func(l *lock.Lease) history.Lease { return l }), true, false},
		{"excludes nobody", take(func(client string) string { return brokenPath + "/" + client },
			func(l *lock.Lease) history.Lease { return elsewhere{l} }), false, true},
		{"ignores its loss", take(one, func(l *lock.Lease) history.Lease { return heedless{l} }), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				h := contend(t, env, c.take)
				verdicts := must.Get(h.Check(checkLimit))(t)
				if len(verdicts) != 1 || verdicts[0].OK() != c.wantOK {
					t.Errorf("%v; want OK %v", verdicts, c.wantOK)
				}
				s := h.LossReport()
				if got := len(s.Faults) > 0; got != c.wantLate {
					t.Errorf("loss before succession: faults %q; want some: %v", s.Faults, c.wantLate)
				}
				if c.wantOK && (s.Losses == 0 || s.Succeeded == 0 || s.MinGap <= 0) {
					t.Errorf("succession %+v; want losses, and successors later", s)
				}
			}, zkenv.Only("virtual time", zkenv.Embedded))
		})
	}
}

// contend has three clients lock and release for a while. One of them is cut off
// whenever it has the lock, for longer than its session lasts.
func contend(t *testing.T, env *zkenv.Env, take taker) *history.History {
	t.Helper()
	var mu sync.Mutex
	var records []history.Record
	emit := func(r history.Record) {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, r)
	}
	clock := func() int64 { return time.Now().UnixNano() }
	ctx, cancel := context.WithTimeout(t.Context(), brokenRun)
	defer cancel()
	var workers sync.WaitGroup
	opts := []framework.Option{framework.WithSessionTimeout(brokenSession)}
	start := func(name string, c *framework.Client, hold time.Duration, granted func()) {
		e := history.Entry{Model: history.Mutex(), Group: brokenPath, Owner: name, Session: func() int64 { return c.Session().ID }}
		v := visitor{history.NewRecorder(name, clock, emit), e, take(t, c, name), hold, granted}
		workers.Go(func() { v.work(ctx, t) })
	}
	route := env.Route(t)
	start("cut off", route.Client(t, opts...), 2*brokenSession, func() {
		route.Blackhole(zkproxy.Both)
		time.AfterFunc(3*brokenSession/2, route.Heal)
	})
	for _, name := range []string{"one", "other"} {
		start(name, env.Client(t, opts...), time.Second, func() {})
	}
	workers.Wait()
	mu.Lock()
	defer mu.Unlock()
	h := must.Get(history.Assemble(records))(t)
	return h
}

// A visitor is one client's use of the lock.
type visitor struct {
	recorder *history.Recorder
	entry    history.Entry
	get      func(context.Context) (history.Lease, error)
	hold     time.Duration
	granted  func()
}

// look is how often a holder looks at its lease.
const look = 10 * time.Millisecond

// work locks, looks at the lease for a while, and releases, until ctx ends.
func (v visitor) work(ctx context.Context, t testing.TB) {
	t.Helper()
	for ctx.Err() == nil {
		h, err := v.recorder.Lock(ctx, v.entry, v.get)
		if err != nil {
			continue
		}
		v.granted()
		for n := v.hold / look; n > 0 && ctx.Err() == nil && h.Check() == nil; n-- {
			<-time.After(look)
		}
		// The release of a lost lease says so; a deletion that waits for a
		// connection goes on by itself.
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), look)
		if err := h.Release(release); err != nil && !errors.Is(err, lock.ErrLost) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("release: %v", err)
		}
		cancel()
	}
}
